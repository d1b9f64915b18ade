"""From parsed columns to tuples that keep the contract of the trace format; every row lost on the way is
counted.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.ingest import numbers, times
from streamgroup.ingest.options import IngestOptions, parse_share
from streamgroup.ingest.readers.protocol import Layout, Parsed, Reject
from streamgroup.kernels.hashing import sampled
from streamgroup.traces.keys import hash_keys

__all__ = ["NULL_KEY", "Contract", "Tuples"]

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

NULL_KEY = "null key"


class Tuples(NamedTuple):
    """Tuples in input order: us since 1970, key (binary, null = the null key), what else they carry.

    `row` numbers the rows kept in this stretch from 0, one entry a tuple; `rows` is how many there are.
    """

    timestamp: I64
    key: pa.Array
    cost: NDArray[np.float32] | None
    value: NDArray[np.float64] | None
    row: I64
    rows: int
    rejects: list[Reject]
    filtered: Counter[str]


class Contract:
    """What an ingest promises about each tuple, made from its options once per process."""

    def __init__(self, options: IngestOptions) -> None:
        """Look up zone, stopwords and bounds; UsageError when one of them is wrong."""
        self._options = options
        self._zone = times.find_zone(options.timezone)
        self._nulls = pa.array([value.encode() for value in options.null_values], pa.binary())
        self._stopwords = pa.array(sorted(options.words_to_skip()), pa.binary())
        self._share = parse_share(options.sample_keys) if options.sample_keys else None
        self._since = self._moment(options.since, "--since")
        self._until = self._moment(options.until, "--until")

    def _moment(self, text: str | None, option: str) -> int | None:
        if text is None:
            return None
        column = pa.array([text.encode()], pa.binary())
        values, status = times.parse_times(column, times.guess_format(column), self._zone)
        if status[0]:
            raise UsageError(
                f"{option}: {text!r} is not a time", "write 2024-03-01T12:00:00Z or a number since the epoch"
            )
        return int(values[0])

    def apply(self, parsed: Parsed, layout: Layout) -> Tuples:
        """Check and filter a stretch of parsed rows; a null key is a reject under `--null-keys fail`.

        Whatever makes a row unusable counts before whatever filters it.
        """
        assert layout.time_format is not None
        rejects, filtered = list(parsed.rejects), Counter(parsed.filtered)
        stamps, status = times.parse_times(parsed.time, layout.time_format, self._zone)
        good = status == 0
        for row in np.flatnonzero(~good).tolist():
            reason = times.REASONS[int(status[row])]
            rejects.append(Reject(int(parsed.line[row]), reason, parsed.text(row)))
        cost = self._numbers(parsed, parsed.cost, "cost", good, rejects)
        value = self._numbers(parsed, parsed.value, "value", good, rejects)
        key = self._null_keys(parsed, good, filtered, rejects)
        self._filter(good, np.greater_equal(stamps, _or(self._since, -(2**63))), "before --since", filtered)
        self._filter(good, np.less(stamps, self._until) if self._until is not None else good, "after --until", filtered)
        rows = np.flatnonzero(good)
        key = key.take(pa.array(rows))
        rows, key = self._words(rows, key, filtered)
        rows, key = self._sample(rows, key, filtered)
        new = np.ones(len(rows), bool)
        new[1:] = rows[1:] != rows[:-1]
        return Tuples(
            stamps[rows],
            key,
            cost[rows].astype(np.float32) if cost is not None else None,
            value[rows] if value is not None else None,
            np.cumsum(new) - 1,
            int(new.sum()),
            sorted(rejects, key=lambda reject: reject.line),
            filtered,
        )

    @staticmethod
    def _filter(good: Mask, condition: Mask, reason: str, filtered: Counter[str]) -> None:
        lost = good & ~condition
        if lost.any():
            filtered[reason] += int(lost.sum())
            good &= condition

    @staticmethod
    def _numbers(
        parsed: Parsed, column: pa.Array | None, name: str, good: Mask, rejects: list[Reject]
    ) -> NDArray[np.float64] | None:
        if column is None:
            return None
        found = numbers.to_float(column)
        if name == "cost":
            with np.errstate(over="ignore", invalid="ignore"):
                fine = np.isfinite(found.astype(np.float32)) & (found >= 0)
            found = np.where(found == 0, 0.0, found)  # no negative zero
        else:
            fine = np.isfinite(found)
        for row in np.flatnonzero(good & ~fine).tolist():
            reason = "cost is negative or not a number" if name == "cost" else "value is not a number"
            rejects.append(Reject(int(parsed.line[row]), reason, parsed.text(row)))
        good &= fine
        return np.where(fine, found, 0.0)

    def _null_keys(self, parsed: Parsed, good: Mask, filtered: Counter[str], rejects: list[Reject]) -> Any:
        key = parsed.key
        if len(self._nulls):
            key = pc.if_else(pc.is_in(key, value_set=self._nulls), pa.scalar(None, key.type), key)
        if not key.null_count:
            return key
        null = key.is_null().to_numpy(zero_copy_only=False) & good
        if self._options.null_keys == "fail":
            rejects.extend(
                Reject(int(parsed.line[row]), NULL_KEY, parsed.text(row)) for row in np.flatnonzero(null).tolist()
            )
            good &= ~null
        if self._options.null_keys == "drop":
            self._filter(good, ~null, NULL_KEY, filtered)
        return key

    def _words(self, rows: I64, key: Any, filtered: Counter[str]) -> tuple[I64, Any]:
        if self._options.split_words:
            text = pa.Array.from_buffers(pa.string(), len(key), key.buffers(), offset=key.offset)
            words = pc.ascii_split_whitespace(text)
            owner = rows[pc.list_parent_indices(words).to_numpy()]
            flat = words.flatten().cast(pa.binary())
            present = pc.greater(pc.binary_length(flat), 0)
            flat, owner = flat.filter(present), owner[present.to_numpy(zero_copy_only=False)]
            nulls = rows[key.is_null().to_numpy(zero_copy_only=False)] if key.null_count else rows[:0]
            if len(nulls):
                order = np.argsort(np.concatenate([owner, nulls]), kind="stable")
                flat = pa.concat_arrays([flat, pa.nulls(len(nulls), pa.binary())]).take(pa.array(order))
                owner = np.concatenate([owner, nulls])[order]
            lost = len(rows) - len(np.unique(owner))
            if lost:
                filtered["no words"] += lost
            rows, key = owner, flat
        if len(self._stopwords):
            keep = pc.invert(pc.is_in(key, value_set=self._stopwords))
            rows, key = self._drop(rows, key, keep, "stopwords only", filtered)
        return rows, key

    def _sample(self, rows: I64, key: Any, filtered: Counter[str]) -> tuple[I64, Any]:
        if self._share is None or not len(rows):
            return rows, key
        encoded = key.dictionary_encode(null_encoding="encode")
        _, high = hash_keys(encoded.dictionary)
        keep = sampled(high, self._share)[encoded.indices.to_numpy()]
        return self._drop(rows, key, pa.array(keep), "key not in --sample-keys", filtered)

    @staticmethod
    def _drop(rows: I64, key: Any, keep: Any, reason: str, filtered: Counter[str]) -> tuple[I64, Any]:
        left = rows[keep.to_numpy(zero_copy_only=False)]
        lost = len(np.unique(rows)) - len(np.unique(left))
        if lost:
            filtered[reason] += lost
        return left, key.filter(keep)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
