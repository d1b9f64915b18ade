"""Consistent Grouping: keys probe bins of bounded load, and busy workers hand bins to idle ones."""

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._time_parameters import Delay, Period, delay_ns, period_ns
from streamgroup.groupings.consistent_grouping.bins import Owners, find_bin, leave, make_owners, widened
from streamgroup.groupings.consistent_grouping.busy_signals import (
    SENT,
    Signals,
    exchange,
    finished,
    hired,
    make_signals,
)
from streamgroup.groupings.protocol import Context, Destinations, GroupingParams, WorkersChange
from streamgroup.kernels.hash_placement import candidate, candidate_words

__all__ = ["CITE", "ConsistentGrouping", "Params", "start"]

CITE = ("CG",)

# Keys of a source whose searches are remembered: a power of two.
_REMEMBERED = 256
_MOST_ROUNDS = 4096
_MOST_BINS = 1 << 24


class Params(GroupingParams):
    """Parameters of Consistent Grouping."""

    virtual: int = Field(default=10, ge=1, le=4096, description="bins (virtual workers) of a worker at the start (V)")
    eps: float = Field(
        default=0.1, gt=0, le=1e6, description="a bin is full at (1 + eps) times the mean load (epsilon)"
    )
    window: Period = Field(default="1s", description="time between two signals of a worker, as in 1s")
    busy: float = Field(
        default=2.0, ge=0, le=1e9, description="a worker is busy whose last tuple waited for more windows"
    )
    idle: float = Field(default=0.1, ge=0, le=1, description="a worker is idle that did nothing for more of its window")
    signal_delay: Delay = Field(default=None, description="delay of signals, as in 5ms; default: the control delay")

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed."""
        return ("hash_seed",)

    def needs_every_delivery(self) -> bool:
        """A worker knows what it still has to do by counting the tuples that were sent and those executed."""
        return True

    def destinations(self, context: Context) -> Destinations:
        """All workers, each key's in the order in which its probes come to their bins at the start."""
        remark = "of these the first whose bin is not full; bins pass from busy workers to idle ones"
        return Destinations(_in_order_of_probes(context, self.virtual), remark)


class ConsistentGrouping(NamedTuple):
    """The first of a key's probes that hits a bin below (1 + eps) times the mean load (Nasir et al.; see the page).

    Each source counts what it put into each of the B = n V bins (`load[source, bin]`) and what it sent in all, with the
    tuple at hand; probe j = 1, 2, ... of a key is F_j over the bins. After B probes the least loaded bin of all gets
    the tuple, of equal ones the lowest. A bin belongs to a worker, at the start V in a row to each. At each end of a
    `window`, a worker whose last tuple waited for more than `busy` windows signals that it is busy, else one that did
    nothing for more than a share `idle` of the window that it is idle. Signals reach all sources at once: a busy worker
    hands the bin it got last to the idle one that waits longest, or waits for one; a worker keeps one bin at least.
    No bin has more than (1 + eps) times a source's mean load plus one of its tuples.

    Departures: the text of the paper was not at hand, only its abstract and the first author's simulator, which has no
    trigger for the signals. What is busy and idle, the limit of B probes, that a worker keeps a bin, and what happens
    when workers come and go (a joiner has no bin until it signals that it is idle, or one leaves) are ours.

    `hashes` uint64[keys, 2] are start and step of a key's probes; `memory` int64[sources, 256, 3] where searches of hot
    keys ended (it changes no choice). `next_read` is the instant of `signals.clock` at which there is something to do:
    what workers finish is not looked at before. `longest` is the wait of a busy worker in ns, `factor` (1 + eps) / B.
    """

    load: NDArray[np.int64]
    tuples: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    memory: NDArray[np.int64]
    owners: Owners
    signals: Signals
    control_messages: NDArray[np.int64]
    control_bytes: NDArray[np.int64]
    factor: float
    longest: float
    idle: float
    period: int
    delay: int
    state_entries: int
    state_entry_bytes: int
    next_read: NDArray[np.int64]

    def choose(self, source: int, key: int, now: int) -> int:
        """Find a bin, count the tuple, and take the bin's owner."""
        row = np.uint64(source)
        tuples = self.tuples[row] + 1
        self.tuples[row] = tuples
        # A load is a whole number: it is below the limit just when it is below the next whole number.
        place = np.uint64(find_bin(self.load, self.memory, self.hashes, source, key, ceil(self.factor * tuples)))
        self.load[row, place] += 1
        return self.owners.owner[place]

    def observe(self, source: int, key: int, worker: int, now: int) -> None:
        """Count what the worker has yet to finish."""
        self.signals.counters[np.uint64(worker), SENT] += 1

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        """Note the worker's work and the wait of its last tuple."""
        finished(self.signals, worker, self.period, arrival, start, finish)

    def tick(self, now: int) -> None:
        """Send the signals of the workers, and take those that have arrived."""
        if self.signals.clock[0] <= now:
            exchange(self, now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "ConsistentGrouping":
        """Distribute the bins of workers that left, each to the worker with the fewest; loads and probes stay."""
        owners = widened(self.owners, int(change.live[-1]) + 1)
        for worker in sorted(change.left):
            leave(owners, worker, change.live)
        signals = hired(self.signals, change.live)
        return self._replace(owners=owners, signals=signals, next_read=signals.clock[:1])


def _in_order_of_probes(context: Context, virtual: int) -> NDArray[np.int64]:
    """Return workers [keys, n] by the first probe that hits a bin of theirs; those that no probe finds come last."""
    bins, rows = context.workers * virtual, np.arange(context.keys)
    unmet = bins + np.tile(np.arange(context.workers), (context.keys, 1))
    for j in range(1, bins + 1):
        owner = candidate(context.hash_lo[rows], context.hash_hi[rows], j, bins, context.hash_seed) // virtual
        first = unmet[rows, owner] >= bins
        unmet[rows[first], owner[first]] = j - 1
        rows = rows[(unmet[rows] >= bins).any(axis=1)]
        if len(rows) == 0:
            break
    return context.live[np.argsort(unmet, axis=1)]


def start(params: Params, context: Context) -> ConsistentGrouping:
    """Distribute the bins round robin, all empty; UsageError for too many of them, or of signals on the way."""
    period, delay = period_ns(params.window), delay_ns(params.signal_delay, context.control_delay)
    if delay // period > _MOST_ROUNDS:
        raise UsageError(
            f"consistent_grouping: signals take over {_MOST_ROUNDS} windows of {params.window}",
            "choose a longer window, or a shorter signal_delay",
        )
    bins = context.workers * params.virtual
    what = f"consistent_grouping: {params.virtual} bins for each of {context.workers} workers"
    fits(bins, _MOST_BINS, what, "lower virtual")
    fits(context.sources * bins, MOST_CELLS, f"{what} at {context.sources} sources", "lower virtual")
    signals = make_signals(context.live, period, delay)
    return ConsistentGrouping(
        load=np.zeros((context.sources, bins), dtype=np.int64),
        tuples=np.zeros(context.sources, dtype=np.int64),
        hashes=candidate_words(context.hash_lo, context.hash_hi, context.hash_seed),
        memory=np.zeros((context.sources, _REMEMBERED, 3), dtype=np.int64),
        owners=make_owners(context.live, params.virtual),
        signals=signals,
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        factor=(1.0 + params.eps) / bins,
        longest=params.busy * period,
        idle=params.idle,
        period=period,
        delay=delay,
        state_entries=2 * bins,
        state_entry_bytes=8,
        next_read=signals.clock[:1],
    )
