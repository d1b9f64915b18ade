"""Readers by name, made from the options of an ingest."""

from streamgroup.base.modules_by_name import READERS, load
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.readers.protocol import Reader

__all__ = ["make_reader", "with_option_files"]


def make_reader(options: IngestOptions) -> Reader:
    """Find the reader by name and make it from the options; UsageError for an unknown one."""
    reader: Reader = load(READERS, options.reader, "reader").Reader(options)
    return reader


def with_option_files(options: IngestOptions) -> IngestOptions:
    """Read the files that options name into the options: tasks may run on machines without these files."""
    files = load(READERS, options.reader, "reader").Reader.files
    own = [options.reader_options.get(name) for name in files]
    return options.with_files([str(path) for path in own if path is not None])
