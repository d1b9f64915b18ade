"""What all who read inputs share: the reader, files for other machines, digests, errors."""

import hashlib
from collections import Counter

from streamgroup.base.discover import READERS, load
from streamgroup.base.errors import DataError
from streamgroup.base.storage.places import locate
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.readers.protocol import Reader

__all__ = ["carrying", "digest_file", "make_reader", "nothing_left", "shown"]

# What is kept of the text of a rejected row.
TEXT_BYTES = 1024
_PIECE_BYTES = 4 << 20


def make_reader(options: IngestOptions) -> Reader:
    """Find the reader by name and give it the options; UsageError for an unknown one."""
    reader: Reader = load(READERS, options.reader, "reader").Reader(options)
    return reader


def carrying(options: IngestOptions) -> IngestOptions:
    """Return options that carry what the files that they name hold: tasks may run on machines without these."""
    files = load(READERS, options.reader, "reader").Reader.files
    own = [options.reader_options.get(name) for name in files]
    return options.carrying([*options.own_files, *(str(path) for path in own if path is not None)])


def shown(text: bytes) -> str:
    """Return the text of a rejected row as it is kept: cut, with replacement characters."""
    return text[:TEXT_BYTES].decode(errors="replace")


def digest_file(path: str) -> str:
    """Return the sha256 of a file in hex."""
    digest = hashlib.sha256()
    with locate(path).open_input() as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def nothing_left(rows: int, filtered: Counter[str], rejected: Counter[str]) -> DataError:
    """Make the error for an input of which no tuple is left, with the commonest reasons."""
    why = [f"{count} {reason}" for reason, count in filtered.most_common(4)]
    why += [f"{count} rejected ({reason})" for reason, count in rejected.most_common(4)]
    what = "1 row" if rows == 1 else f"{rows} rows"
    message = f"no tuple is left of {what}" + (f": {', '.join(why)}" if why else "")
    return DataError(message, "look at a few rows with --dry-run")
