"""Access logs of web servers in the Common or Combined Log Format, with or without a virtual host in front."""

import re
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import DataError
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing import fields
from streamgroup.ingest.parsing.lines import HEAD_ROWS, Block, LineReader
from streamgroup.ingest.readers.options import AccessLog
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject, find_columns

__all__ = ["Reader"]

I64 = NDArray[np.int64]

_NAMES = ("vhost", "host", "ident", "user", "time", "request", "method", "path", "status", "bytes", "referer", "agent")
_TIME = "%d/%b/%Y:%H:%M:%S %z"

_VHOST = r"(?P<vhost>\S+) "
# A host may be a list of addresses that proxies passed on, a user may hold blanks.
_PREFIX = r"(?P<host>[^ ,]+(?:, ?[^ ,]+)*) (?P<ident>\S+) (?P<user>[^ ]+(?: [^\[ ][^ ]*)*) \[(?P<time>[^\]]*)\] "
_STATUS_BYTES = r"(?P<status>\d{3}|-) (?P<bytes>\d+|-)"
_INSIDE = r'(?:[^"\\]|\\.)*'
_UNQUOTED = r'[^" ][^ ]*'
_EXTRA_FIELDS = rf'(?: (?:"{_INSIDE}"|{_UNQUOTED})?)*'
# The quotes stay with the referer and the agent, so that an empty one differs from a missing one. Each alternative is
# chosen by the next byte alone, which makes the matching faster.
_STRICT = (
    rf'{_PREFIX}"(?P<request>{_INSIDE})" {_STATUS_BYTES}(?: (?:(?P<referer>"{_INSIDE}")'
    rf'(?: (?:(?P<agent>"{_INSIDE}"){_EXTRA_FIELDS}|{_UNQUOTED}{_EXTRA_FIELDS})?)?|{_UNQUOTED}{_EXTRA_FIELDS})?)?'
)
# For the lines of servers that do not escape quotes, tried on those that the strict one refuses.
_LOOSE = rf'{_PREFIX}"(?P<request>.*?)" {_STATUS_BYTES}(?: (?P<referer>"[^"]*") (?P<agent>".*"))?'
_METHOD, _VERSION = r"^(?P<method>[A-Za-z][A-Za-z-]*) ", r"(?: HTTP/\d(?:\.\d)?)?$"
# By whether a path keeps its query: for the common requests, and for those with blanks in the path, which are slower.
_REQUESTS = {
    True: (rf"{_METHOD}(?P<path>[^ ]+){_VERSION}", rf"{_METHOD}(?P<path>\S.*?){_VERSION}"),
    False: (
        rf"{_METHOD}(?P<path>[^? ]+)(?:\?[^ ]*)?{_VERSION}",
        rf"{_METHOD}(?P<path>[^? ][^?]*?)(?:\?.*?)?{_VERSION}",
    ),
}
_FOUR_IN_FRONT = r"^\S+ [^ -]\S* - \S+ \["

_ESCAPED = re.compile(rb"\\.")
_STAMP = re.compile(rb"\[[^\]]*\]")


class Reader(LineReader):
    """Access logs: a `-` for user, referer or agent is a null key, as is the path of what is no HTTP request."""

    Options: ClassVar = AccessLog
    joins: ClassVar[tuple[str, ...]] = ("key",)
    about = "access logs of web servers (Common and Combined Log Format)"
    defaults: ClassVar = Defaults(time=("time",), key=("path",))

    def __init__(self, options: IngestOptions) -> None:
        """Take the time format of these logs where none is given."""
        if options.time_format == "auto":
            options = options.model_copy(update={"time_format": _TIME})
        super().__init__(options)

    def look(self, head: Block, path: str) -> Layout:
        """Detect a virtual host in front of most of the first 1,000 lines."""
        lines = fields.find_lines(head.data)
        if not (lines.end > lines.start).any():
            raise DataError(f"{path}: no rows in it", "give a file that has some")
        texts = fields.column(head.buffer, lines.start[:HEAD_ROWS], lines.end[:HEAD_ROWS])
        given = getattr(self.own, "vhost", "auto")
        vhost = given == "yes"
        inferred: tuple[str, ...] = ()
        if given == "auto":
            vhost = 2 * (pc.sum(pc.match_substring_regex(texts, _FOUR_IN_FRONT)).as_py() or 0) > len(texts)
            inferred = ("a virtual host comes first",) if vhost else ()
        return Layout(
            names=_NAMES,
            **find_columns(self.options, self.defaults, _NAMES, path),
            inferred=inferred,
            extra=("vhost",) if vhost else (),
        )

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Match the lines of a block, in compiled code; those that do not match are rejected."""
        lines = fields.find_lines(block.data)
        start, end, number = lines.start[:rows], lines.end[:rows], lines.number[:rows]
        texts = fields.column(block.buffer, start, end)
        front = _VHOST if layout.extra else ""
        found, keep, odd = _match(texts, np.arange(len(start)), f"^{front}{_STRICT}$")
        if len(odd):
            loose, more, odd = _match(texts, odd, f"^{front}{_LOOSE}$")
            keep = np.concatenate([keep, more])
            order = np.argsort(keep)
            found, keep = pa.concat_arrays([found, loose]).take(pa.array(order)), keep[order]
        rejects: list[Reject] = []
        blank = 0
        for row in odd.tolist():
            text = texts[row].as_py()
            if text.strip():
                rejects.append(Reject(int(number[row]), _fault(text), text))
            else:
                blank += 1
        return Parsed(
            rows=len(start),
            lines=len(lines.start),
            consumed=len(block.data),
            line=number[keep],
            time=self._column(found, _NAMES[layout.time]),
            key=layout.key_of(lambda number: self._column(found, _NAMES[number])),
            **layout.optional_of(
                lambda number: self._number(found, _NAMES[number]), lambda number: self._column(found, _NAMES[number])
            ),
            text=lambda entry: texts[int(keep[entry])].as_py(),
            rejects=rejects,
            filtered={"blank": blank} if blank else {},
        )

    def _column(self, found: pa.StructArray, name: str) -> Any:
        """Return a column as it is written; `-` is null."""
        if name in ("method", "path"):
            return _part(pc.struct_field(found, "request"), name, query=bool(getattr(self.own, "query", False)))
        if name == "vhost" and found.type.get_field_index(name) < 0:
            return pa.nulls(len(found), pa.binary())
        column = pc.struct_field(found, name)
        if name in ("referer", "agent"):
            # Without the quotes around it; a field that is not there is no empty one.
            inner = pc.binary_slice(column, 1, -1)
            column = pc.if_else(pc.equal(column, b""), pa.scalar(None, pa.binary()), inner)
        return pc.if_else(pc.equal(column, b"-"), pa.scalar(None, pa.binary()), column)

    def _number(self, found: pa.StructArray, name: str) -> Any:
        """Return a column for cost, value or weight: no bytes sent are 0 of them."""
        column = self._column(found, name)
        return pc.fill_null(column, b"0") if name == "bytes" else column


def _match(texts: Any, rows: I64, pattern: str) -> tuple[Any, I64, I64]:
    """Match some of the texts: what was found of those that do, which they are, and which do not."""
    found = pc.extract_regex(texts.take(pa.array(rows)), pattern)
    fits = found.is_valid()
    mask = fits.to_numpy(zero_copy_only=False)
    return found.filter(fits), rows[mask], rows[~mask]


def _part(request: Any, name: str, *, query: bool) -> Any:
    """Return the method or path of requests, null for what is none."""
    common, rare = _REQUESTS[query]
    part = pc.struct_field(pc.extract_regex(request, common), name)
    if part.null_count:
        missed = part.is_null()
        part = pc.replace_with_mask(part, missed, pc.struct_field(pc.extract_regex(request.filter(missed), rare), name))
    return part


def _fault(text: bytes) -> str:
    if not _STAMP.search(text):
        return "no time in brackets"
    if _ESCAPED.sub(b"", text).count(b'"') % 2:
        return fields.NEVER_CLOSED
    return "not a line of the Common or Combined Log Format"
