"""Checks and filters parsed rows: the tuples keep the contract of the trace format, and every row lost is counted."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.ingest.options import CommonOptions, IngestOptions, parse_share
from streamgroup.ingest.parsing import numbers, times
from streamgroup.ingest.parsing.column_list_text import NO_TIME
from streamgroup.ingest.parsing.condition_text import parse_where
from streamgroup.ingest.pipeline.composite_keys import NOT_UTF8, composite
from streamgroup.ingest.pipeline.expand_rows import Tuples, between, expand
from streamgroup.ingest.pipeline.row_conditions import meets
from streamgroup.ingest.readers.protocol import Each, Layout, Parsed, Reject
from streamgroup.kernels.hash_placement import sampled
from streamgroup.traces.hash_and_show_keys import hash_keys

__all__ = ["NULL_KEY", "Contract"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

NULL_KEY = "null key"
# A larger count is a mistake: no disk holds so many tuples.
MAX_REPEAT = 1 << 40
# Tuples examined at a time to find the rows with one between --since and --until.
_BATCH_TUPLES = 1 << 18
# Costs are stored in us.
_COST_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


class _KeyRows(NamedTuple):
    """Keys one after the other, the row of each (ascending), and its place among the keys as they were parsed."""

    key: Any
    row: I64
    place: I64

    def only(self, keep: Mask) -> "_KeyRows":
        """Keep some of the keys."""
        return self if keep.all() else _KeyRows(self.key.filter(pa.array(keep)), self.row[keep], self.place[keep])


class _Slice(NamedTuple):
    """The tuples of each row within the bounds: `number` of them, from place `first` on."""

    first: I64
    number: I64

    def each(self, whole: Callable[[I64, I64], Each] | None) -> Callable[[I64, I64], Each]:
        """Shift the function `each` of a row to start at the first tuple left."""
        assert whole is not None
        return lambda entry, place: whole(entry, place + self.first[entry])


class Contract:
    """The checks and filters of an ingest, made from its options once per process."""

    def __init__(self, options: CommonOptions) -> None:
        """Look up zone, stopwords and bounds; UsageError when one of them is wrong."""
        self._options = options
        self._zone = times.find_zone(options.timezone or "UTC")
        self._nulls = pa.array([value.encode() for value in options.null_values], pa.binary())
        self._stopwords = pa.array(sorted(options.read_stopwords()), pa.binary())
        self._where = parse_where(options.where) if isinstance(options, IngestOptions) and options.where else ()
        self._share = parse_share(options.sample_keys) if options.sample_keys else None
        self._timeless = isinstance(options, IngestOptions) and options.time == NO_TIME
        if self._timeless and (options.since or options.until):
            raise UsageError("--since and --until: there are no times with --time none", "use --limit or --head")
        self._since = self._parse_bound(options.since, "--since")
        self._until = self._parse_bound(options.until, "--until")

    def _parse_bound(self, text: str | None, option: str) -> int | None:
        """Read a bound: a number in the unit of --time-format, by its size under auto; else as --time-format or ISO."""
        if text is None:
            return None
        column = pa.array([text.encode()], pa.binary())
        forms = (times.resolve_format(self._options.time_format), times.guess_format(column))
        for form in filter(None, forms):
            values, status = times.parse_times(column, form, self._zone)
            if not status[0]:
                return int(values[0])
        raise UsageError(f"{option}: {text!r} is not a time", "write 2024-03-01T12:00:00Z or a number since the epoch")

    def apply(self, parsed: Parsed, layout: Layout) -> Tuples:
        """Check and filter a batch of parsed rows; a null key is a reject under `--null-keys fail`.

        Rejects count before filters. A row of several keys is filtered when none
        of them is left, for the reason that took the last one.
        """
        filtered = Counter(parsed.filtered)
        checked = _RowChecks(parsed)
        if self._where:
            # First: what is wrong with rows that nobody wants does not matter.
            self._filter(checked.good, meets(self._where, parsed.where, self._nulls), "does not meet --where", filtered)
        zone = self._zone
        if layout.zone is not None and self._options.timezone is None:
            zone = times.find_zone(layout.zone)
        owner, flat = _flatten(self._key(parsed.key, checked))
        found = _KeyRows(flat, owner, np.arange(len(owner)))
        if len(self._nulls):
            key = pc.if_else(pc.is_in(flat, value_set=self._nulls), pa.scalar(None, flat.type), flat)
            found = found._replace(key=key)
        null = found.key.is_null().to_numpy(zero_copy_only=False) if found.key.null_count else None
        if null is not None and self._options.null_keys == "drop" and not _is_list(parsed.key):
            # A record without time and key is one of another kind, not a broken one.
            absent = null & parsed.time.is_null().to_numpy(zero_copy_only=False)
            self._filter(checked.good, ~absent, NULL_KEY, filtered)
        if self._timeless:
            stamps = np.zeros(len(parsed.line), np.int64)
        else:
            stamps, status = times.parse_times(parsed.time, layout.time_format or times.KNOWN, zone)
            for code, reason in times.REASONS.items():
                checked.reject(status == code, reason)
        cost = self._read_cost(parsed.cost, owner, checked)
        value = self._read_finite(parsed.value, "value", checked)
        weight = self._read_finite(parsed.weight, "weight", checked)
        repeat = self._check_repeat(parsed.repeat, checked)
        if null is not None and self._options.null_keys == "fail":
            checked.reject(_mask_of(owner[null], len(stamps)), NULL_KEY)
        good = checked.good
        if _is_list(parsed.key):
            self._filter(good, _mask_of(owner, len(stamps)), "no keys", filtered)
        if null is not None and self._options.null_keys == "drop":
            found = found.only(~null)
            self._filter(good, _mask_of(found.row, len(stamps)), NULL_KEY, filtered)
        if repeat is not None:
            self._filter(good, repeat > 0, "count is 0", filtered)
        since, until, part = self._within_bounds(parsed, stamps, good)
        self._filter(good, since, "before --since", filtered)
        self._filter(good, until, "after --until", filtered)
        each, within = parsed.each, (self._since, self._until)
        if part is not None:
            repeat, each, within = part.number, part.each(each), (None, None)
        found = self._sample(self._split_words(found.only(good[found.row]), filtered), filtered)
        rows = found.row
        new = np.ones(len(rows), bool)
        new[1:] = rows[1:] != rows[:-1]
        # A table has no order that would keep the tuples of a row together; repeated ones are events of their own.
        trees = isinstance(self._options, IngestOptions) and repeat is None
        trees = trees and (self._options.split_words or _is_list(parsed.key))
        nth = np.arange(len(rows)) - np.flatnonzero(new)[np.cumsum(new) - 1] if trees and len(rows) else None
        costs = None if cost is None else cost[found.place if _is_list(parsed.cost) else rows].astype(np.float32)
        return Tuples(
            stamps[rows],
            found.key,
            costs,
            value[rows] if value is not None else None,
            np.cumsum(new) - 1,
            int(new.sum()),
            sorted(checked.rejects, key=lambda reject: reject.line),
            filtered,
            weight[rows] if weight is not None else None,
            repeat[rows] if repeat is not None else None,
            each=_for_rows(each, rows),
            within=within,
            nth=nth.astype(np.uint32) if nth is not None else None,
        )

    def _key(self, key: Any, checked: "_RowChecks") -> Any:
        """Make composite keys of their parts; a row with a part that is not UTF-8 is rejected."""
        if not pa.types.is_struct(key.type):
            return key
        made = composite(key.flatten(), self._nulls)
        checked.reject(made.misfit, NOT_UTF8)
        return made.key

    def _within_bounds(self, parsed: Parsed, stamps: I64, good: Mask) -> tuple[Mask, Mask, "_Slice | None"]:
        """Mark the rows with a tuple from --since on, and those of them with such a tuple before --until.

        Where these tuples are contiguous in each row, returns their places, too.
        """
        if parsed.each is None or (self._since is None and self._until is None):
            return between(stamps, (self._since, None)), between(stamps, (None, self._until)), None
        assert parsed.repeat is not None
        verdict = None if parsed.span is None else self._span_verdict(*parsed.span)
        if verdict is not None:
            return np.full_like(good, verdict[0]), np.full_like(good, verdict[1]), None
        rows = np.flatnonzero(good)
        if parsed.ascending:
            first, last = np.zeros(len(good), np.int64), np.where(good, parsed.repeat, 0)
            count = last
            if self._since is not None:
                first = _first_from(parsed.each, rows, first, count, self._since)
            if self._until is not None:
                last = _first_from(parsed.each, rows, first, count, self._until)
            return first < count, first < last, _Slice(first, last - first)
        since, until = np.zeros_like(good), np.zeros_like(good)
        for entries, place in expand(parsed.repeat[rows], _BATCH_TUPLES):
            row = rows[entries]
            stamps = parsed.each(row, place).time
            since[row[between(stamps, (self._since, None))]] = True
            until[row[between(stamps, (self._since, self._until))]] = True
        return since, until, None

    def _span_verdict(self, first: int, last: int) -> tuple[bool, bool] | None:
        """Check whether all times in [first, last) are from --since on, and before --until; None if only some are."""
        if self._since is not None and last <= self._since:
            return False, False
        if self._since is not None and first < self._since:
            return None
        if self._until is None or last <= self._until:
            return True, True
        return (True, False) if first >= self._until else None

    @staticmethod
    def _filter(good: Mask, condition: Mask, reason: str, filtered: Counter[str]) -> None:
        lost = good & ~condition
        if lost.any():
            filtered[reason] += int(lost.sum())
            good &= condition

    def _read_cost(self, column: Any, owner: I64, checked: "_RowChecks") -> NDArray[np.float64] | None:
        """Read costs, one a row or, of lists, one a key: a row with a wrong one is rejected."""
        if column is None:
            return None
        rows, each = len(checked.good), _is_list(column)
        if each:
            of, column = _flatten(column)
            uneven = np.bincount(of, minlength=rows) != np.bincount(owner, minlength=rows)
            checked.reject(uneven, "not as many costs as keys")
            found = np.zeros(len(owner))
            found[~uneven[owner]] = numbers.to_float(column)[~uneven[of]]
        else:
            found = numbers.to_float(column)
        with np.errstate(over="ignore", invalid="ignore"):
            found = found * _COST_UNITS[self._options.cost_unit]
            fine = np.isfinite(found.astype(np.float32)) & (found >= 0)
        checked.reject(_mask_of(owner[~fine], rows) if each else ~fine, "cost is negative or not a number")
        # No negative zero.
        return np.where(fine & (found != 0), found, 0.0)

    @staticmethod
    def _read_finite(column: Any, name: str, checked: "_RowChecks") -> NDArray[np.float64] | None:
        if column is None:
            return None
        found = numbers.to_float(column)
        fine = np.isfinite(found)
        checked.reject(~fine, f"{name} is not a number")
        return np.where(fine, found, 0.0)

    @staticmethod
    def _check_repeat(repeat: I64 | None, checked: "_RowChecks") -> I64 | None:
        if repeat is None:
            return None
        checked.reject(repeat < 0, "count is negative")
        checked.reject(repeat > MAX_REPEAT, "count is too large")
        return repeat

    def _split_words(self, found: _KeyRows, filtered: Counter[str]) -> _KeyRows:
        if self._options.split_words:
            key = found.key
            text = pa.Array.from_buffers(pa.string(), len(key), key.buffers(), offset=key.offset)
            words = pc.ascii_split_whitespace(text)
            of = pc.list_parent_indices(words).to_numpy()
            flat = words.flatten().cast(pa.binary())
            present = pc.greater(pc.binary_length(flat), 0)
            flat, of = flat.filter(present), of[present.to_numpy(zero_copy_only=False)]
            if key.null_count:
                nulls = np.flatnonzero(key.is_null().to_numpy(zero_copy_only=False))
                order = np.argsort(np.concatenate([of, nulls]), kind="stable")
                flat = pa.concat_arrays([flat, pa.nulls(len(nulls), pa.binary())]).take(pa.array(order))
                of = np.concatenate([of, nulls])[order]
            split = _KeyRows(flat, found.row[of], found.place[of])
            self._count_lost(found, split, "no words", filtered)
            found = split
        if len(self._stopwords):
            keep = pc.invert(pc.is_in(found.key, value_set=self._stopwords)).to_numpy(zero_copy_only=False)
            left = found.only(keep)
            self._count_lost(found, left, "stopwords only", filtered)
            found = left
        return found

    def _sample(self, found: _KeyRows, filtered: Counter[str]) -> _KeyRows:
        if self._share is None or not len(found.row):
            return found
        encoded = found.key.dictionary_encode(null_encoding="encode")
        _, high = hash_keys(encoded.dictionary)
        left = found.only(sampled(high, self._share)[encoded.indices.to_numpy()])
        self._count_lost(found, left, "key not in --sample-keys", filtered)
        return left

    @staticmethod
    def _count_lost(before: _KeyRows, after: _KeyRows, reason: str, filtered: Counter[str]) -> None:
        lost = _count_distinct(before.row) - _count_distinct(after.row)
        if lost:
            filtered[reason] += lost


class _RowChecks:
    """The rows that passed all checks so far, and the rejects: a row is rejected once, for the first reason."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self.good = np.ones(len(parsed.line), bool)
        self.rejects = list(parsed.rejects)

    def reject(self, wrong: Mask, reason: str) -> None:
        for row in np.flatnonzero(self.good & wrong).tolist():
            self.rejects.append(Reject(int(self._parsed.line[row]), reason, self._parsed.text(row)))
        self.good &= ~wrong


def _is_list(column: Any) -> bool:
    return column is not None and bool(pa.types.is_list(column.type) or pa.types.is_large_list(column.type))


def _flatten(column: Any) -> tuple[I64, Any]:
    """Return the row of each entry of all lists, and the entries; a list that is null counts as one null entry."""
    if not _is_list(column):
        return np.arange(len(column)), column
    count = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    flat = column.flatten()
    if not column.null_count:
        return np.repeat(np.arange(len(column)), count), flat
    null = column.is_null().to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(column)), np.where(null, 1, count))
    source = np.cumsum(~null[row]) - 1
    return row, flat.take(pa.array(source, mask=null[row]))


def _mask_of(rows: I64, size: int) -> Mask:
    mask = np.zeros(size, bool)
    mask[rows] = True
    return mask


def _count_distinct(ascending: I64) -> int:
    return len(ascending) and 1 + int(np.count_nonzero(np.diff(ascending)))


def _first_from(each: Callable[[I64, I64], Each], rows: I64, low: I64, high: I64, time: int) -> I64:
    """Find the first place in [low, high) of some rows whose tuple comes at a time or later, else `high`."""
    low, high = low.copy(), high.copy()
    while len(rows := rows[low[rows] < high[rows]]):
        middle = (low[rows] + high[rows]) // 2
        late = each(rows, middle).time >= time
        high[rows[late]] = middle[late]
        low[rows[~late]] = middle[~late] + 1
    return low


def _for_rows(each: Callable[[I64, I64], Each] | None, rows: I64) -> Callable[[I64, I64], Each] | None:
    return None if each is None else lambda entry, place: each(rows[entry], place)
