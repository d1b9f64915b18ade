"""Distribution-aware key grouping (Rivetti et al., DEBS 2015): learn how frequent keys are, then plan who gets them."""

from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._control_server_time import ServiceTime, service_ns
from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings._share_threshold import Share, share_of
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange
from streamgroup.groupings.rivetti_dkg.plans import (
    ITEMS,
    TUPLES,
    Counts,
    Learners,
    Plans,
    add_up,
    forget,
    held,
    larger_counts,
    learn,
    make_counts,
    make_learners,
    make_plans,
    plan_for,
    widened,
    worker_of,
)
from streamgroup.kernels import hash_placement
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.control_servers import ControlServers, make_servers, serve
from streamgroup.kernels.counts.space_saving import cells_taken
from streamgroup.kernels.int_map import put

__all__ = ["CITE", "DistributionAware", "Params", "start"]

CITE = ("DEBS",)

I64 = NDArray[np.int64]

_MOST_ENTRIES = 1 << 24
_NEVER = (1 << 63) - 1
# Bytes of a key or bucket with a count or worker, and of a counter of a bucket.
_ENTRY_BYTES, _COUNTER_BYTES = 16, 8
# Columns of `phase`: whether a source learns, and its tuples until that changes or it reports.
_LEARNING, _LEFT = range(2)


class Params(HashedParams):
    """Parameters of distribution-aware key grouping."""

    theta: Share = Field(default="1/2n", description="share from which on a key is heavy (theta, 0..1]")
    mu: float = Field(default=2.0, ge=1, le=1000, description="buckets for each worker (mu)")
    epsilon_factor: float = Field(
        default=2.0, ge=1, le=1e6, description="entries of a table times theta (theta/epsilon): higher is more exact"
    )
    learning_length: int = Field(default=80_000, ge=1, le=1 << 33, description="tuples that are learned from (m)")
    relearn_every: int = Field(
        default=0, ge=0, le=1 << 40, description="tuples after which a plan begins to be replaced; 0: it stays for ever"
    )
    learner: Literal["shared", "source"] = Field(
        default="shared",
        description="sources report their counts to one learner, which answers with one plan; or each source learns and"
        " plans for itself (the authors' code), and a key may go to as many workers",
    )
    learner_service: ServiceTime = Field(default="0", description="time that the learner takes for a report")

    def not_alone(self, sources: int) -> str:
        """A shared plan is made from what all sources learned."""
        return "its sources learn together: set learner=source" if self.learner == "shared" and sources > 1 else ""

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed."""
        return ("hash_seed",)

    def hot_share(self, workers: int) -> Fraction:
        """Heavy keys are those from theta on."""
        return share_of(self.theta, workers)

    def cold_choices(self, workers: int) -> int | None:
        """Every key has one worker, or one for each source."""
        del workers
        return 1 if self.learner == "shared" else None

    def destinations(self, context: Context) -> Destinations:
        """A key goes to F_1 until there is a plan."""
        remark = f"so for the first {self.learning_length} tuples; then by a plan learned from them, to any one worker"
        return Destinations(_first(context)[:, np.newaxis], remark)


class DistributionAware(NamedTuple):
    """Keys are planned once: heavy ones one by one, the others by bucket, each to the worker with the least so far.

    Tuples go to F_1 while sources learn (`plans`). A source reports what it has counted to the learner each time that
    it has counted its part of `learning_length`, `share` tuples, and counts on from nothing. When the reports add up to
    `learning_length`, the learner plans and sends the plan to all sources: it is theirs, at `due` int64[1], `wait` ns,
    two control delays, and what the learner takes for it (`servers`), after the last report was sent. What is reported
    meanwhile comes too late.
    If each source learns for itself (`apart`), its plan is made from its own first `learning_length` tuples, and is
    used from the next one on: nothing is sent. So it is with one source.

    `base` uint16[keys] is F_1; `hashed` uint32[keys] the part of the hash that gives a key's bucket; `theta` int64[2]
    numerator and denominator. `counts` is what was reported. `phase` int64[sources, 2] is what each source is at.
    `rows` is for sorting.

    O(1) a tuple, and table and buckets once for each report.

    Departures from the authors' code (the text is not at hand): while learning, tuples go to F_1 instead of nowhere;
    several sources learn together, for otherwise a key has a worker for each source; they may learn again
    (`relearn_every`).
    """

    base: NDArray[np.uint16]
    hashed: NDArray[np.uint32]
    live: I64
    theta: I64
    learners: Learners
    counts: Counts
    plans: Plans
    rows: I64
    phase: I64
    due: I64
    servers: ControlServers
    control_messages: I64
    control_bytes: I64
    state_entries: I64
    theta_text: str
    mu: float
    epsilon_factor: float
    learning_length: int
    share: int
    rest: int
    wait: int
    apart: bool
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker of the plan, or F_1 while there is none."""
        phase, plans, row = self.phase, self.plans, np.uint64(source)
        number = np.int64(source) if self.apart else np.int64(0)
        hashed = self.hashed[np.uint64(key)]
        worker = worker_of(plans, number, hashed, key, self.base[np.uint64(key)])
        if phase[row, _LEFT] == 0:
            phase[row, _LEARNING] = 1
            phase[row, _LEFT] = self.share
        phase[row, _LEFT] -= 1
        entries = plans.size[number, ITEMS]
        if phase[row, _LEARNING] != 0:
            learn(self.learners, source, hashed, key)
            counted = held(self.learners, source)
            entries += counted
            if phase[row, _LEFT] == 0:
                if self.apart:
                    add_up(self.learners, source, self.counts)
                    plan_for(self.counts, plans, number, self.hashed, self.live, self.theta, self.rows)
                    phase[row, _LEARNING] = 0
                    phase[row, _LEFT] = self.rest
                else:
                    columns = self.learners.bucket.shape[1]
                    self.control_messages[0] += 1
                    self.control_bytes[0] += (counted - columns) * _ENTRY_BYTES + columns * _COUNTER_BYTES
                    phase[row, _LEFT] = self.share
                    # All reports take equally long to the learner.
                    served = serve(self.servers.free, self.servers.jobs, self.servers.takes, 0, now)
                    if self.due[0] < _NEVER:
                        forget(self.learners, source)
                    else:
                        add_up(self.learners, source, self.counts)
                        if self.counts.size[TUPLES] >= self.learning_length:
                            self.due[0] = served + self.wait
        self.state_entries[row] = entries
        return worker

    def tick(self, now: int) -> None:
        """Take over the plan that has come: it ends the learning of all sources."""
        if now >= self.due[0]:
            plan_for(self.counts, self.plans, np.int64(0), self.hashed, self.live, self.theta, self.rows)
            self.due[0] = _NEVER
            sources = self.phase.shape[0]
            for source in range(sources):
                forget(self.learners, source)
                self.phase[source, _LEARNING] = 0
                self.phase[source, _LEFT] = self.rest
            self.control_messages[0] += sources
            self.control_bytes[0] += sources * self.plans.size[0, ITEMS] * _ENTRY_BYTES

    def workers_changed(self, change: WorkersChange, context: Context) -> "DistributionAware":
        """Return what a leaver had to those with the least; who learns begins anew, with the size for n workers."""
        capacity, columns = _sizes(self.theta_text, self.mu, self.epsilon_factor, context)
        plans = widened(self.plans, capacity, columns, change)
        for number in range(len(plans.size)):
            _give_away(plans, number, change)
        keys = _most_keys(capacity, context.sources, self.apart)
        # What a plan that is on its way is made from stays.
        on_its_way = self.due[0] < _NEVER
        counts = larger_counts(self.counts, keys, columns) if on_its_way else make_counts(keys, columns)
        phase = self.phase.copy()
        phase[phase[:, _LEARNING] != 0, _LEFT] = self.share
        return self._replace(
            base=_first(context),
            live=change.live.copy(),
            theta=_pair(share_of(self.theta_text, context.workers)),
            learners=make_learners(context.sources, capacity, columns),
            counts=counts,
            plans=plans,
            rows=_rows(plans, context.workers),
            phase=phase,
            due=self.due.copy(),
            state_entries=self.state_entries.copy(),
        )


def _give_away(plans: Plans, number: int, change: WorkersChange) -> None:
    """Move each item of a leaver, in the plan's order, to the live worker with the least planned load."""
    live, (size, columns) = set(change.live.tolist()), plans.size[number].tolist()
    first = number * (len(plans.item) // len(plans.size))
    for entry in plans.item[first : first + size]:
        item, worker, load = entry.tolist()
        if worker in live:
            continue
        least = int(change.live[np.argmin(plans.load[number, change.live])])
        plans.load[number, least] += load
        entry[1] = least
        if item < columns:
            plans.owner[number, item] = least
        else:
            call(put, plans.heavy, (item - columns) * len(plans.size) + number, least)


def _first(context: Context) -> NDArray[np.uint16]:
    return np.ascontiguousarray(context.candidates(1)[:, 0])


def _pair(share: Fraction) -> I64:
    return np.array([share.numerator, share.denominator], dtype=np.int64)


def _sizes(theta: str, mu: float, epsilon_factor: float, context: Context) -> tuple[int, int]:
    """Return the capacity of a table and the number of buckets; UsageError if the tables would be too large."""
    capacity = ceil(Fraction(str(epsilon_factor)) / share_of(theta, context.workers))
    if capacity > _MOST_ENTRIES:
        raise UsageError(
            f"rivetti_dkg: epsilon_factor / theta is {capacity} entries, and a table holds up to {_MOST_ENTRIES}",
            "raise theta, or lower epsilon_factor",
        )
    columns = ceil(mu * context.workers)
    fits(
        cells_taken(context.sources, capacity) + context.sources * columns,
        MOST_CELLS,
        f"rivetti_dkg: tables of {capacity} entries at each of {context.sources} sources",
        "raise theta, or lower epsilon_factor or mu",
    )
    return capacity, columns


def _most_keys(capacity: int, sources: int, apart: bool) -> int:
    """Return the most keys that a plan may be made from: as many reports as sources add up to `learning_length`."""
    return capacity if apart else capacity * sources


def _rows(plans: Plans, workers: int) -> I64:
    """Make rows to sort the items of a plan in, and the workers."""
    return np.zeros((2, max(len(plans.item) // len(plans.size), workers), 3), dtype=np.int64)


def start(params: Params, context: Context) -> DistributionAware:
    """Begin to learn."""
    capacity, columns = _sizes(params.theta, params.mu, params.epsilon_factor, context)
    apart = params.learner == "source" or context.sources == 1
    parts = 1 if apart else context.sources
    plans = make_plans(context.sources if apart else 1, capacity, columns, context.workers)
    share = -(-params.learning_length // parts)
    return DistributionAware(
        base=_first(context),
        hashed=hash_placement.sketch_columns(context.hash_lo, 0, 1 << 32).view(np.uint32),
        live=context.live.copy(),
        theta=_pair(share_of(params.theta, context.workers)),
        learners=make_learners(context.sources, capacity, columns),
        counts=make_counts(_most_keys(capacity, context.sources, apart), columns),
        plans=plans,
        rows=_rows(plans, context.workers),
        phase=np.repeat(np.array([[1, share]], dtype=np.int64), context.sources, axis=0),
        due=np.full(1, _NEVER, dtype=np.int64),
        servers=make_servers([service_ns(params.learner_service)]),
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        state_entries=np.full(context.sources, columns, dtype=np.int64),
        theta_text=params.theta,
        mu=params.mu,
        epsilon_factor=params.epsilon_factor,
        learning_length=params.learning_length,
        share=share,
        rest=-(-params.relearn_every // parts) if params.relearn_every > 0 else _NEVER,
        # Times are below 2^62, so that the sum is a time.
        wait=min(2 * context.control_delay, (1 << 62) - 1),
        apart=apart,
        state_entry_bytes=_ENTRY_BYTES,
    )
