"""What a reader is: it plans the splits of an input, lays out its columns, and parses it.

A reader is one file in this folder with a class `Reader`. Most derive from `LineReader` (`parsing/lines.py`)
or `DelimitedReader` (`parsing/delimited.py`) and only declare; the contract (times, nulls, filters) is not
their work.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from streamgroup.base.errors import UsageError
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing.column_list_text import NO_TIME, column_names
from streamgroup.ingest.parsing.columns_as_text import joined_keys, joined_times
from streamgroup.ingest.parsing.condition_text import parse_where
from streamgroup.ingest.parsing.times import TimeFormat
from streamgroup.ingest.readers.options import ReaderOptions

__all__ = [
    "Defaults",
    "Each",
    "Layout",
    "Parsed",
    "Reader",
    "Reject",
    "Split",
    "find_column",
    "find_columns",
    "refuse",
]


class Split(NamedTuple):
    """A slice of one input that one task reads: bytes [start, end) (or row groups), at most `rows` rows."""

    number: int
    file: int
    path: str
    start: int
    end: int | None
    rows: int | None = None


class Layout(NamedTuple):
    """What was found at the start of one input: its columns and how its times are written.

    `time`, `key`, `cost`, `value`, `weight` are 0-based column numbers (-1: none). `time_parts`, `key_parts` are those
    of a time or key of several columns, of which `time`, `key` is the first; `key_types` are the types of the parts
    where they are no strings. `where` are the columns of the conditions of --where. `width` is the number of fields of
    a row (0: any). `header` is the physical line of the header (0: none), and lines up to `skip` are no rows.
    `inferred` lists for people what was detected. `extra` is what the reader found in the path or the head and wants to
    see again. `zone` is that of times without an offset, where the format has one and `--timezone` is not given.
    """

    names: tuple[str, ...]
    time: int
    key: int
    cost: int = -1
    value: int = -1
    weight: int = -1
    width: int = 0
    header: int = 0
    delimiter: bytes = b","
    blank_after: bool = False
    time_format: TimeFormat | None = None
    inferred: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    zone: str | None = None
    time_parts: tuple[int, ...] = ()
    key_parts: tuple[int, ...] = ()
    key_types: tuple[str, ...] = ()
    skip: int = 0
    where: tuple[int, ...] = ()

    def time_of(self, column: Callable[[int], Any], rows: int) -> Any:
        """Return the times of rows, all null where there are none; `column` returns a column by its number."""
        if self.time_parts:
            return joined_times([column(number) for number in self.time_parts])
        return column(self.time) if self.time >= 0 else pa.nulls(rows, pa.binary())

    def key_of(self, column: Callable[[int], Any]) -> Any:
        """Return the keys of rows, or the parts of composite keys side by side."""
        return joined_keys([column(number) for number in self.key_parts]) if self.key_parts else column(self.key)

    def optional_of(self, column: Callable[[int], Any], text: Callable[[int], Any] | None = None) -> dict[str, Any]:
        """Return `cost`, `value` and `weight` of rows, None for those that the layout lacks, and the columns `where`.

        `text` returns a column as it is written, where `column` does not.
        """
        numbers = {"cost": self.cost, "value": self.value, "weight": self.weight}
        found: dict[str, Any] = {name: column(number) if number >= 0 else None for name, number in numbers.items()}
        return found | {"where": tuple(map(text or column, self.where))}


class Reject(NamedTuple):
    """A row that cannot be used: its physical line (1-based), why, and its bytes."""

    line: int
    reason: str
    text: bytes


class Each(NamedTuple):
    """What tuples of a row have of their own: us since 1970 in UTC, and a weight where the row's is not theirs."""

    time: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None


class Parsed(NamedTuple):
    """The columns of a batch of input, one entry per record that could be parsed.

    `rows` counts all records of the batch (rejected and filtered ones too), `lines` its physical lines,
    `consumed` its bytes. `line` holds the physical line of each entry, counted from 1 at the start of the
    batch. `time` is binary texts or an arrow timestamp; `key` binary with nulls, or lists of them: a tuple for each,
    or structs of the parts of a composite key; the others texts or numbers, `cost` lists of them where each key of a
    list has its own. `repeat` int64[entries] says how many tuples each row makes, one if None; `each(i, j)` what tuple
    j (from 0) of row i has of its own, the same whenever it is asked. `ascending` says that times of a row never fall
    from one j to the next, `span` that all times of `each` lie in [first, last); readers set them where they can, as
    --since and --until then need not look at every tuple. `text(i)` gives entry i as it was written. `where`
    are the columns of the conditions of --where.
    """

    rows: int
    lines: int
    consumed: int
    line: NDArray[np.int64]
    time: pa.Array
    key: pa.Array
    cost: pa.Array | None
    value: pa.Array | None
    text: Callable[[int], bytes]
    rejects: list[Reject]
    filtered: dict[str, int]
    weight: pa.Array | None = None
    repeat: NDArray[np.int64] | None = None
    each: Callable[[NDArray[np.int64], NDArray[np.int64]], Each] | None = None
    ascending: bool = False
    span: tuple[int, int] | None = None
    where: tuple[Any, ...] = ()


class Defaults(NamedTuple):
    """The columns taken when none is named: names (the first one found counts) or 1-based numbers."""

    time: tuple[str, ...]
    key: tuple[str, ...]
    cost: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()


class Reader(ABC):
    """A raw format. Made from the options once per process; holds no state of a run.

    `joins` names which of time and key can be several columns, and whether the time can be none. `files` names those of
    its own options that are paths of files. `instead` is the advice where one of `Options.unused` is given.
    """

    about: ClassVar[str]
    defaults: ClassVar[Defaults]
    Options: ClassVar[type[ReaderOptions]] = ReaderOptions
    joins: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ()
    instead: ClassVar[str] = "leave it out"

    def __init__(self, options: IngestOptions) -> None:
        """Check the options; UsageError names the one that is wrong, or means nothing here."""
        self.options = options
        try:
            self.own = self.Options.model_validate(options.reader_options)
        except ValidationError as error:
            place, reason, _ = first_problem(error)
            known = ", ".join(self.Options.model_fields) or "none"
            name = place.partition(".")[0] or "options"
            raise UsageError(f"reader {options.reader}: {name}: {reason}", f"its options: {known}") from None
        refuse(options, *self.Options.unused, hint=self.instead)
        for what in ("time", "key"):
            text = getattr(options, what)
            several = text is not None and len(column_names(text)) > 1
            if (several or (what == "time" and text == NO_TIME)) and what not in self.joins:
                raise UsageError(f"reader {options.reader}: --{what} is one column", "a name with a comma is quoted")
            if several and what == "key" and options.split_words:
                raise UsageError("--split-words: a key of several columns has no words", "name one column with --key")

    @abstractmethod
    def plan(self, path: str) -> list[tuple[int, int | None]]:
        """Cut a file into slices (start, end) that can be read on their own, in order."""

    @abstractmethod
    def layout(self, path: str) -> Layout:
        """Look at the start of a file: columns, delimiter, and the form of its times (decided for `auto`)."""

    @abstractmethod
    def batches(self, split: Split, layout: Layout) -> Iterator[Parsed]:
        """Read a split in batches of bounded size. DataError when the file is damaged."""


def find_column(wanted: str | None, defaults: tuple[str, ...], names: tuple[str, ...], what: str, path: str) -> int:
    """Find a column by name or 1-based number; UsageError lists the columns found.

    A number that is also the name of another column is refused, unless it is in quotes: then it is a name. -1 when none
    is wanted: nothing is asked for, and there is no default, or none of the defaults is there and `what` is cost, value
    or weight, which tuples may lack.
    """
    quoted = False
    if wanted is not None:
        asked = column_names(wanted)
        if len(asked) > 1:
            raise UsageError(f"--{what} {wanted} is {len(asked)} columns", "name one; a name with a comma is quoted")
        wanted, quoted = asked[0]
    for text in (wanted,) if wanted is not None else defaults:
        number = int(text) if text.isdecimal() and not quoted else 0
        if names.count(text) > 1:
            raise UsageError(f"{path}: two columns are named {text!r}", f"name --{what} by its number, from 1")
        if names.count(text) == 1:
            at = names.index(text)
            if wanted is not None and 1 <= number <= len(names) and number != at + 1:
                other = names[number - 1]
                raise UsageError(
                    f"{path}: --{what} {text} is column {number}, {_shown(other)!r}, and the name of column {at + 1}",
                    f"""name it in quotes, as in --{what} '"{text}"' or '"{_shown(other)}"'""",
                )
            return at
        if 1 <= number <= len(names):
            return number - 1
    if wanted is None and (not defaults or what in ("cost", "value", "weight")):
        return -1
    found = ", ".join(
        name if name == str(number) else f"{number} {_shown(name)}" for number, name in enumerate(names[:40], 1)
    )
    if wanted is None:
        raise UsageError(f"{path}: which column is the {what}? Found: {found}", f"name it with --{what}")
    hint = "is the --delimiter right?" if len(names) == 1 else f"give --{what} one of these names or numbers"
    raise UsageError(f"{path}: there is no column {wanted!r} (--{what}). Found: {found}", hint)


def _shown(name: str) -> str:
    """Write a name that may be anything, as of a file of zeros, for people: cut, and without control characters."""
    cut = name[:40] + "..." if len(name) > 40 else name
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def find_columns(
    options: IngestOptions, defaults: Defaults, names: tuple[str, ...], path: str, **among: tuple[str, ...]
) -> dict[str, Any]:
    """Find all columns of a layout by their names: time, key, cost, value, weight, parts of keys, and those of --where.

    `among` names the columns that can serve as one of these, where they are others than `names`.
    """
    found: dict[str, Any] = {}
    for what, wanted in defaults._asdict().items():
        text, there = getattr(options, what), among.get(what, names)
        if what == "time" and text == NO_TIME:
            found[what] = -1
            continue
        parts = column_names(text) if text is not None and what in ("time", "key") else ()
        if len(parts) > 1:
            numbers = tuple(find_column(_quoted(*part), wanted, there, what, path) for part in parts)
            found |= {what: numbers[0], f"{what}_parts": numbers}
        else:
            found[what] = find_column(text, wanted, there, what, path)
    conditions = parse_where(options.where) if options.where is not None else ()
    return found | {"where": tuple(find_column(one.column, (), names, "where", path) for one in conditions)}


def _quoted(text: str, quoted: bool) -> str:
    escaped = text.replace('"', '""')
    return f'"{escaped}"' if quoted else text


def refuse(options: IngestOptions, *names: str, hint: str) -> None:
    """Raise a UsageError if one of these options, which mean nothing to the reader, is given."""
    for name in names:
        if getattr(options, name) != IngestOptions.model_fields[name].default:
            raise UsageError(f"reader {options.reader} has no --{name.replace('_', '-')}", hint)
