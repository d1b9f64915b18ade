"""FISH: keys that are hot of late get more workers, and each tuple goes where the least work seems to be left."""

from fractions import Fraction
from math import ceil
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from streamgroup.base.limits import MOST_CELLS, MOST_WORKERS, fits
from streamgroup.base.numbers_and_durations import LONGEST_NS
from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings._share_threshold import Share, share_of
from streamgroup.groupings._time_parameters import Period, period_ns
from streamgroup.groupings.fish.backlogs import drain, drain_at_speeds, make_backlogs, send, send_at_speeds
from streamgroup.groupings.fish.count_and_widen import BY_CHK, EVERYWHERE, OPTIMAL, FishCore, Widths, count_and_widen
from streamgroup.groupings.fish.decayed_space_saving import LARGEST_CAPACITY, cells_taken, checked_alpha, make_table
from streamgroup.groupings.fish.delayed_service_reports import (
    Reports,
    finished,
    make_reports,
    pass_time,
    sent,
    with_workers,
)
from streamgroup.groupings.fish.start_and_worker_changes import changed_core, shortlists_of, start_core
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange

__all__ = ["CITE", "CountingFish", "Fish", "OracleFish", "Params", "start"]

CITE = ("000",)

_ENTRY_BYTES = 16


def _checked_width(text: str) -> str:
    if text == "avg":
        return text
    if not (text.isdecimal() and text.isascii() and 2 <= int(text) <= MOST_WORKERS):
        raise ValueError(f"d_min must be avg or a number from 2 to {MOST_WORKERS}")
    return str(int(text))


class Params(HashedParams):
    """Parameters of FISH."""

    alpha: Annotated[float, AfterValidator(checked_alpha)] = Field(
        default=0.2, ge=0, le=1, description="what an epoch leaves of all counts (alpha in 000); 1 forgets nothing"
    )
    epoch: int = Field(default=1000, ge=1, le=1 << 40, description="tuples of a source's epoch (N_epoch)")
    capacity: int = Field(
        default=1000, ge=1, le=LARGEST_CAPACITY, description="keys that a source tracks (K_max); 1/theta at least"
    )
    theta: Share = Field(default="1/4n", description="share of the stream above which a key is hot (theta)")
    d_min: Annotated[str, BeforeValidator(str), AfterValidator(_checked_width)] = Field(
        default="2", description="fewest workers of a hot key (d_min), or avg: their mean"
    )
    interval: Period = Field(default="10s", description="time between two looks at what workers have left (T)")
    vnodes: int = Field(default=100, ge=1, le=10_000, description="virtual nodes of a worker on the ring (V)")
    hwa: bool = Field(default=True, description="infer what workers have left; else compare what was sent (HWA)")
    chk: bool = Field(default=True, description="more workers for hotter keys; else all workers for hot ones (CHK)")
    ring: bool = Field(default=True, description="workers of a key are its next on a ring; else F_1, F_2, ...")
    head: Literal["chk", "w", "d"] = Field(
        default="chk", description="workers of hot keys: chk, w (all) or d (as d_choices)"
    )
    f_mode: Literal["ratio", "epoch_end"] = Field(
        default="epoch_end",
        description="a key's frequency is its share of what is counted: now (ratio), or at the epoch's end (epoch_end)",
    )
    scope: Literal["source", "global"] = Field(
        default="source", description="backlogs for each source, or one for all (global)"
    )
    pw: Literal["sampled", "oracle"] = Field(
        default="sampled",
        description="time of a tuple on a worker (P_w): reported by the workers (sampled), or known (oracle)",
    )
    drain: Literal["elapsed", "literal"] = Field(
        default="elapsed",
        description="C_w loses what was served in the time passed; literal: it gains N_w once more and loses T / P_w",
    )

    def sees(self) -> tuple[str, ...]:
        """With `pw=oracle` the cost of the tuple and the speeds of the workers."""
        return ("cost", "slowdown") if self.hwa and self.pw == "oracle" else ()

    def not_alone(self, sources: int) -> str:
        """Backlogs that all sources share are in one process."""
        return "its sources share their backlogs: set scope=source" if self.scope == "global" and sources > 1 else ""

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed, and the ring does not."""
        return () if self.ring else ("hash_seed",)

    def hot_share(self, workers: int) -> Fraction:
        """Hot is above theta."""
        return share_of(self.theta, workers)

    def cold_choices(self, workers: int) -> int:
        """A cold key has two."""
        return min(2, workers)

    def destinations(self, context: Context) -> Destinations:
        """A cold key has the next two on the ring, or F_1 and F_2."""
        lists = shortlists_of(context, self.vnodes if self.ring else 0)
        places = lists.point if self.ring else slice(None)
        remark = "a key that is treated as hot may go to more, up to all workers; at a stream's start most keys are"
        return Destinations(lists.nearest[places, : min(2, context.workers)], remark)

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """A table that is too small evicts hot keys, and on a ring `hash` has no effect."""
        doubts = [*super().doubts(workers, sources, keys), *self.doubts_of_ring(self.ring)]
        least = ceil(1 / share_of(self.theta, workers))
        if self.capacity < min(least, keys):
            doubts.append(f"capacity={self.capacity} is under 1/theta = {least}: hot keys may be forgotten")
        return doubts


class Fish(NamedTuple):
    """FISH (000): each source counts its keys with decay and infers what workers have left.

    A key is hot if its decayed count is above theta times the sum of all counts at the end of the epoch. The hottest
    may go to all n workers; one with 2^-i of its count to n / 2^i, at least d_min, and never to fewer than before while
    it is tracked (CHK, Algorithm 2). Others have two. They are the next distinct workers on a consistent-hash ring
    (section 4.2.2).

    Of them the tuple goes to the one with the least C_w P_w (Algorithm 3): C_w tuples that the source sent and that
    must be left, P_w ns for each. When more than T has passed, C_w loses its source's share of what the worker has
    served since. P_w is measured at the worker: it reports the mean time of its tuples after the first 50, then
    every T; a report takes the control delay (section 4.2.1). Before the first report, C_w alone is compared.
    `next_read` int64[1] is when it matters next what has finished (see `delayed_service_reports`).

    Departures from the paper: a tuple is counted once in C_w (Algorithm 3 adds it twice); the time that has passed is
    taken off, not the constant T, and by each source 1/sources of it, since a worker serves the others too
    (`drain=literal` has Algorithm 3 to the letter); M_k is forgotten with the entry of k. What the paper leaves open:
    f_k is a share of the counts that there will be when the epoch is complete (`f_mode`), d_min is 2, and ties go to
    the nearest worker on the ring.
    """

    core: FishCore
    reports: Reports
    state_entries: NDArray[np.int64]
    state_entry_bytes: int
    choices: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    control_messages: NDArray[np.int64]
    control_bytes: NDArray[np.int64]
    next_read: NDArray[np.int64]
    theta: str
    vnodes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Count the tuple, find how many workers its key may go to, and take the one that seems to be done first."""
        drain(self.core.backlogs, source, now)
        d = count_and_widen(self.core, source, key)
        worker = send(self.core.backlogs, self.core.shortlists, source, key, d)
        sent(self.reports, worker)
        return worker

    def executed(self, worker: int, key: int, arrival: int, start: int, finish: int) -> None:
        """Measure the tuple at its worker."""
        finished(self.reports, worker, finish - start, finish)

    def tick(self, now: int) -> None:
        """Let workers report and reports arrive."""
        pass_time(self.reports, self.core.backlogs, now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "Fish":
        """Take the ring of the live workers; a joiner has the smallest backlog, and the mean time of the others."""
        core = changed_core(self.core, change, context, self.vnodes, _threshold(self.theta, context.workers))
        reports = with_workers(self.reports, core.backlogs.left.shape[1])
        return self._replace(core=core, reports=reports, state_entries=core.entries)


class CountingFish(NamedTuple):
    """FISH without its inference of backlogs (`hwa=false`; 000 figure 16): the fewest tuples sent by the source.

    The keys and their workers are as in `Fish`.
    """

    core: FishCore
    state_entries: NDArray[np.int64]
    state_entry_bytes: int
    choices: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    theta: str
    vnodes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Count the tuple, find how many workers its key may go to, and take the one that was sent the fewest."""
        d = count_and_widen(self.core, source, key)
        return send(self.core.backlogs, self.core.shortlists, source, key, d)

    def workers_changed(self, change: WorkersChange, context: Context) -> "CountingFish":
        """Take the ring of the live workers; a joiner starts at the fewest tuples."""
        core = changed_core(self.core, change, context, self.vnodes, _threshold(self.theta, context.workers))
        return self._replace(core=core, state_entries=core.entries)


class OracleFish(NamedTuple):
    """FISH that knows the time of a tuple (`pw=oracle`): mean cost so far times the worker's slowdown at the moment.

    The keys, their workers and the inference are as in `Fish`. `costs` float64[1] and `tuples` int64[1] are the sum
    and the number of the tuples so far.
    """

    core: FishCore
    cost: NDArray[np.float64]
    slowdown: NDArray[np.float64]
    costs: NDArray[np.float64]
    tuples: NDArray[np.int64]
    state_entries: NDArray[np.int64]
    state_entry_bytes: int
    choices: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    theta: str
    vnodes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Count the tuple, find how many workers its key may go to, and take the one that seems to be done first."""
        self.costs[0] += self.cost[0]
        self.tuples[0] += 1
        mean = self.costs[0] / self.tuples[0]
        drain_at_speeds(self.core.backlogs, source, now, mean, self.slowdown)
        d = count_and_widen(self.core, source, key)
        return send_at_speeds(self.core.backlogs, self.core.shortlists, source, key, d, mean, self.slowdown)

    def workers_changed(self, change: WorkersChange, context: Context) -> "OracleFish":
        """Take the ring of the live workers; a joiner has the smallest backlog."""
        assert context.cost is not None
        assert context.slowdown is not None
        core = changed_core(self.core, change, context, self.vnodes, _threshold(self.theta, context.workers))
        return self._replace(core=core, cost=context.cost, slowdown=context.slowdown, state_entries=core.entries)


def _threshold(theta: str, workers: int) -> float:
    share = share_of(theta, workers)
    return share.numerator / share.denominator


def _widths(params: Params, context: Context) -> Widths:
    head = {"chk": BY_CHK if params.chk else EVERYWHERE, "w": EVERYWHERE, "d": OPTIMAL}[params.head]
    least = 0 if params.d_min == "avg" else int(params.d_min)
    return Widths(
        planned=np.full(context.sources, 2, dtype=np.int64),
        hot=np.zeros(params.capacity),
        theta=_threshold(params.theta, context.workers),
        workers=context.workers,
        epoch_end=params.f_mode == "epoch_end",
        head=head,
        least=least,
        is_planned=head == OPTIMAL or (head == BY_CHK and least == 0),
    )


def start(params: Params, context: Context) -> Fish | CountingFish | OracleFish:
    """Start without keys, tuples or reports; UsageError for tables or reports that are too large."""
    interval = min(period_ns(params.interval), LONGEST_NS - 1)
    fits(
        cells_taken(context.sources, params.capacity),
        MOST_CELLS,
        f"fish: {params.capacity} keys at each of {context.sources} sources",
        "lower capacity",
    )
    reports = None
    if params.hwa and params.pw == "sampled":
        workers = int(context.live[-1]) + 1
        reports = make_reports(workers, context.sources, interval, min(context.control_delay, LONGEST_NS - 1))
    rows, is_literal = context.sources if params.scope == "source" else 1, params.drain == "literal"
    share = 1.0 if is_literal else float(rows)
    core = start_core(
        context,
        params.vnodes if params.ring else 0,
        make_table(context.sources, params.capacity, params.alpha, params.epoch),
        _widths(params, context),
        make_backlogs(rows, context.live, interval, share, is_literal),
    )
    common: dict[str, Any] = {
        "core": core,
        "state_entries": core.entries,
        "state_entry_bytes": _ENTRY_BYTES,
        "choices": core.choices,
        "detector_entries": core.tracked,
        "theta": params.theta,
        "vnodes": params.vnodes if params.ring else 0,
    }
    if not params.hwa:
        return CountingFish(**common)
    if reports is None:
        assert context.cost is not None
        assert context.slowdown is not None
        costs, tuples = np.zeros(1), np.zeros(1, dtype=np.int64)
        return OracleFish(**common, cost=context.cost, slowdown=context.slowdown, costs=costs, tuples=tuples)
    return Fish(
        **common,
        reports=reports,
        control_messages=reports.messages,
        control_bytes=reports.octets,
        next_read=reports.next_read,
    )
