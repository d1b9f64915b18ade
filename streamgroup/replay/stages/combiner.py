"""The combiner in each source (`--combine`): tuples of one key in a mini-batch are merged before they are sent.

Nothing flows back to it, so the stream goes through it before the simulation, chunk by chunk: what comes out are merged
tuples in the order in which they leave, and for each of them its originals.
"""

import contextlib
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.numbers_and_durations import parse_number
from streamgroup.base.time_count_or_share import parse_extent
from streamgroup.cluster.service_time import MAX_SERVICE_NS
from streamgroup.kernels.latency_histogram import buckets_of
from streamgroup.replay.accounting.window_rows import CARRY
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.simulation.source_server import Servers

__all__ = ["CombineRule", "Combiner", "Members", "merged_before", "parse_combine"]

I64 = NDArray[np.int64]
_MOST = 1 << 40
_LAST_NS = 1 << 62
_NONE = np.zeros(0, dtype=np.int64)


class CombineRule(NamedTuple):
    """A mini-batch is `size` tuples of a source or, if that is 0, what comes within `width_ns`.

    A merged tuple costs `share` of the sum of its originals' costs, or the largest of them if that is 0.
    """

    size: int
    width_ns: int
    share: float


def parse_combine(text: str | None, cost: str) -> CombineRule | None:
    """Read `--combine` (a count or a time; None: there is no combiner) and `--combine-cost` (max, sum or a share)."""
    share = 0.0 if cost == "max" else 1.0
    if cost not in ("max", "sum"):
        number = parse_number(cost, "--combine-cost is max, sum or a share")
        if not 0 < number <= 1:
            raise UsageError(f"--combine-cost {cost} is not a share over 0, up to 1", "write max, sum or 0.2")
        share = float(number)
    if text is None:
        if cost != "max":
            raise UsageError(f"--combine-cost {cost} needs a combiner", "add --combine 100, or --combine 10ms")
        return None
    extent = parse_extent(text, "--combine")
    if extent.kind == "share":
        raise UsageError(f"--combine {text}: a mini-batch is a number of tuples or a time", "write 100 or 10ms")
    if extent.kind == "count":
        if not 1 <= extent.count < _MOST:
            raise UsageError(f"--combine {text} is not between 1 and 2^40 tuples")
        return CombineRule(extent.count, 0, share)
    if not 1 <= extent.ns <= MAX_SERVICE_NS:
        raise UsageError(f"--combine {text} is not between 1 ns and 2^53 ns (104 days)")
    return CombineRule(0, extent.ns, share)


class Members(NamedTuple):
    """The originals of merged tuples, ordered by merged tuple, then by the stream: int64[k] each.

    `unit` is the number of the merged tuple, `seq`, `arrival` and `source` are those of the original.
    """

    unit: I64
    seq: I64
    arrival: I64
    source: I64


class _Rows(NamedTuple):
    """Originals that have not left, in the order of the stream; `emission` is when each comes to the combiner."""

    seq: I64
    arrival: I64
    emission: I64
    source: I64
    batch: I64
    key: NDArray[np.uint32]
    cost: NDArray[np.float64] | I64


class Combiner:
    """The combiners of all sources, behind their `servers` (None: sources take no time), which this runs, too.

    The first `warmup` tuples are not measured. `constant` is the cost of every tuple that brings none. `seen` gets each
    chunk as it is read, `members` the originals of merged tuples before these are given.
    """

    def __init__(
        self,
        rule: CombineRule,
        sources: int,
        servers: Servers | None,
        constant: float | int,
        warmup: int,
        *,
        seen: Callable[[Ready], None],
        members: Callable[[Members], None],
    ) -> None:
        self._rule, self._sources, self._constant, self._warmup = rule, sources, constant, warmup
        self.servers = servers
        self._seen, self._members = seen, members
        # By source: tuples that came, and the last emission.
        self._came = np.zeros(sources, dtype=np.int64)
        self._emitted = np.zeros(sources, dtype=np.int64)
        self._last_arrival = 0
        self._rows: _Rows | None = None
        self.units = 0

    def chunks(self, stream: Generator[Ready]) -> Generator[Ready]:
        """Yield the merged tuples in the order in which they leave."""
        priced = False
        try:
            for ready in stream:
                self._seen(ready)
                priced = ready.cost is not None or self._rule.share > 0
                self._add(ready)
                yield from self._left(priced=priced, end=False)
        finally:
            stream.close()
        yield from self._left(priced=priced, end=True)

    def _add(self, ready: Ready) -> None:
        size = len(ready.key)
        seq = np.arange(ready.offset, ready.offset + size, dtype=np.int64)
        source = seq % self._sources if ready.source is None else ready.source.astype(np.int64)
        emission, place = ready.arrival.copy(), np.zeros(size, dtype=np.int64)
        order = np.argsort(source, kind="stable")
        own = source[order]
        begins = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), size], strict=True):
            rows, which = order[begin:end], int(own[begin])
            if self.servers is not None:
                factor = None if ready.source_factor is None else ready.source_factor[rows]
                emission[rows] = self._served(which, ready.arrival[rows], factor, seq[rows] >= self._warmup)
            place[rows] = self._came[which] + np.arange(end - begin)
            self._came[which] += end - begin
            self._emitted[which] = emission[rows[-1]]
        batch = place // self._rule.size if self._rule.size else emission // self._rule.width_ns
        cost = np.full(size, self._constant) if ready.cost is None else ready.cost
        self._last_arrival = int(ready.arrival[-1])
        added = _Rows(seq, ready.arrival, emission, source, batch, ready.key, cost)
        if self._rows is not None:
            pairs: list[Any] = [np.concatenate(pair) for pair in zip(self._rows, added, strict=True)]
            added = _Rows(*pairs)
        self._rows = added

    def _served(
        self, source: int, arrival: I64, factor: NDArray[np.float64] | None, measured: NDArray[np.bool_]
    ) -> I64:
        """Return when a source has served its tuples, one after the other."""
        assert self.servers is not None
        base = self.servers.base[source]
        service = np.full(len(arrival), base) if factor is None else np.rint(np.float64(base) * factor).astype(np.int64)
        if float(service.sum(dtype=np.float64)) + max(float(arrival[-1]), float(self._emitted[source])) > _LAST_NS:
            raise DataError("a source would serve past the clock's 146 years", "use a shorter --source-service")
        done = np.cumsum(service)
        free: I64 = np.maximum(np.maximum.accumulate(arrival - (done - service)), self._emitted[source])
        emission: I64 = free + done
        waits = (emission - service - arrival)[measured]
        self.servers.busy[source] += service[measured].sum()
        np.add.at(self.servers.histogram, buckets_of(waits), 1)
        total = (int(self.servers.waits[1]) << 62) + int(self.servers.waits[0]) + sum(waits.tolist())
        self.servers.waits[:] = total & (CARRY - 1), total >> 62
        return emission

    def _left(self, *, priced: bool, end: bool) -> Generator[Ready]:
        """Yield the merged tuples that leave before all that is still to come; at the `end` all of them."""
        rows = self._rows
        if rows is None or not len(rows.seq):
            return
        order = np.lexsort((rows.key, rows.batch, rows.source))
        source, batch, key = rows.source[order], rows.batch[order], rows.key[order]
        new_batch = np.append(True, (source[1:] != source[:-1]) | (batch[1:] != batch[:-1]))
        new_unit = new_batch | np.append(True, key[1:] != key[:-1])
        begins, unit = np.flatnonzero(new_unit), np.cumsum(new_unit) - 1
        flush = self._flushes(rows, order, new_batch, end=end)[begins]
        first = rows.seq[order][begins]
        leaves = np.full(len(begins), True) if end else flush < self._last_arrival
        some = np.flatnonzero(leaves)
        some = some[np.lexsort((first[some], flush[some]))]
        if not len(some):
            return
        rank = np.full(len(begins), -1, dtype=np.int64)
        rank[some] = self.units + np.arange(len(some))
        ranked = rank[unit]
        gone = np.flatnonzero(ranked >= 0)
        gone = gone[np.argsort(ranked[gone], kind="stable")]
        to, which = ranked[gone], order[gone]
        self._members(Members(to, rows.seq[which], rows.arrival[which], rows.source[which]))
        cost = self._costs(rows.cost[which], to - self.units, len(some)) if priced else None
        stays = np.sort(order[ranked < 0])
        self._rows = _Rows(*(column[stays] for column in rows))
        made = flush[some], key[begins][some], cost, source[begins][some].astype(np.int32)
        for column in made:
            if column is not None:
                column.flags.writeable = False
        offset, self.units = self.units, self.units + len(some)
        yield Ready(offset, *made, 0, _NONE, _NONE)

    def _flushes(self, rows: _Rows, order: I64, new_batch: NDArray[np.bool_], *, end: bool) -> I64:
        """Return for each of the ordered rows when its mini-batch leaves; past the clock if that is not known."""
        source, batch = rows.source[order], rows.batch[order]
        if not self._rule.size:
            # What comes next to a source comes at the last arrival or its last emission, or later.
            known = batch < np.maximum(self._emitted, self._last_arrival)[source] // self._rule.width_ns
            return np.where(known | end, (batch + 1) * self._rule.width_ns, 2 * _LAST_NS - 1)
        begins = np.flatnonzero(new_batch)
        last = np.maximum.reduceat(rows.emission[order], begins)[np.cumsum(new_batch) - 1]
        full = batch < self._came[source] // self._rule.size
        rest = np.maximum(self._emitted, self._last_arrival)[source] if end else np.int64(2 * _LAST_NS - 1)
        return np.where(full, last, rest)

    def _costs(self, cost: NDArray[np.float64] | I64, unit: I64, units: int) -> NDArray[np.float64] | I64:
        """Return the cost of each merged tuple; `cost` are those of the originals, ordered by merged tuple."""
        if self._rule.share == 0:
            begins = np.searchsorted(unit, np.arange(units))
            return np.maximum.reduceat(cost, begins)
        # One after the other, which is exact for whole numbers up to 2^53.
        total: NDArray[np.float64] = np.bincount(unit, weights=cost, minlength=units).astype(np.float64)
        total *= self._rule.share
        if float(total.max()) > MAX_SERVICE_NS:
            raise DataError("a merged tuple would be served for over 2^53 ns (104 days)", "use --combine-cost max")
        return total if cost.dtype.kind == "f" else np.rint(total).astype(np.int64)


def merged_before(
    make: Callable[[Callable[[Ready], None], Callable[[Members], None]], Combiner],
    stream: Generator[Ready],
    tuples: int,
) -> int:
    """Count the merged tuples that leave before the tuple of the trace after the first `tuples` arrives."""
    arrives: int | None = None

    def seen(ready: Ready) -> None:
        nonlocal arrives
        if ready.offset <= tuples < ready.offset + len(ready.key):
            arrives = int(ready.arrival[tuples - ready.offset])

    found = 0
    with contextlib.closing(make(seen, lambda _: None).chunks(stream)) as merged:
        for ready in merged:
            before = len(ready.key) if arrives is None else int(np.searchsorted(ready.arrival, arrives))
            found += before
            if before < len(ready.key):
                break
    return found
