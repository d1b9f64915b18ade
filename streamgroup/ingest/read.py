"""What all who read inputs share: the reader, paths for other machines, digests, errors."""

import hashlib
from collections import Counter
from pathlib import Path

from streamgroup.base.discover import READERS, load
from streamgroup.base.errors import DataError
from streamgroup.base.storage import locate
from streamgroup.ingest.options import ENGLISH, IngestOptions
from streamgroup.ingest.readers.protocol import Reader

__all__ = ["digest_file", "located", "make_reader", "nothing_left", "shown"]

# What is kept of the text of a rejected row.
TEXT_BYTES = 1024
_PIECE_BYTES = 4 << 20


def make_reader(options: IngestOptions) -> Reader:
    """Find the reader by name and give it the options; UsageError for an unknown one."""
    reader: Reader = load(READERS, options.reader, "reader").Reader(options)
    return reader


def located(options: IngestOptions) -> IngestOptions:
    """Give options in which files have absolute paths: Spark's workers may run in directories of their own."""
    own = dict(options.reader_options)
    for name in load(READERS, options.reader, "reader").Reader.files:
        if own.get(name) is not None:
            own[name] = str(Path(str(own[name])).absolute())
    words = options.stopwords
    if words is not None and words != ENGLISH:
        words = str(Path(words).absolute())
    return options.model_copy(update={"stopwords": words, "reader_options": own})


def shown(text: bytes) -> str:
    """Give the text of a rejected row as it is kept: cut, with replacement characters."""
    return text[:TEXT_BYTES].decode(errors="replace")


def digest_file(path: str) -> str:
    """Give the sha256 of a file in hex."""
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
