"""Distribution-aware key grouping (Rivetti et al., DEBS 2015): learn how frequent keys are, then plan who gets them."""

from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.base.compiling.interpreting import call
from streamgroup.base.errors import UsageError
from streamgroup.groupings._hashed import HashedParams
from streamgroup.groupings._membership import carry_loads
from streamgroup.groupings._share_threshold import Share, share_of
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange
from streamgroup.groupings.rivetti_dkg.plans import (
    COLUMNS,
    ITEMS,
    Learner,
    Plan,
    forget,
    learn,
    make_learner,
    make_plan,
    plan_for,
    widened,
    worker_of,
)
from streamgroup.kernels import hashing
from streamgroup.kernels.int_map import put
from streamgroup.kernels.space_saving import SpaceSaving, capacity_of

__all__ = ["CITE", "DistributionAware", "Params", "start"]

CITE = ("DEBS",)

I64 = NDArray[np.int64]

_MOST_ENTRIES = 1 << 24
_NEVER = 1 << 62
# Places of `phase`: whether a learner is at work, tuples until that changes, which learner it is, and which is next.
_LEARNING, _LEFT, _AT_WORK, _NEXT = range(4)


class Params(HashedParams):
    """Parameters of distribution-aware key grouping."""

    theta: Share = Field(default="1/2n", description="share from which on a key is heavy (theta, 0..1]")
    mu: float = Field(default=2.0, ge=1, le=1000, description="buckets for each worker (mu)")
    epsilon_factor: float = Field(
        default=2.0, ge=1, le=1e6, description="entries of the table times theta (theta/epsilon): higher is more exact"
    )
    learning_length: int = Field(default=80_000, ge=1, le=1 << 33, description="tuples that are learned from (m)")
    relearn_every: int = Field(
        default=0, ge=0, le=1 << 40, description="tuples after which a plan begins to be replaced; 0: it stays for ever"
    )

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed."""
        return ("hash_seed",)

    def hot_share(self, workers: int) -> Fraction:
        """Heavy keys are those from theta on."""
        return share_of(self.theta, workers)

    def cold_choices(self, workers: int) -> int:
        """Every key has one worker."""
        del workers
        return 1

    def destinations(self, context: Context) -> Destinations:
        """A key goes to F_1 until there is a plan."""
        remark = f"so for the first {self.learning_length} tuples; then by a plan learned from them, to any one worker"
        return Destinations(_first(context)[:, np.newaxis], remark)


class DistributionAware(NamedTuple):
    """Keys are planned once: heavy ones one by one, the others by bucket, each to the worker with the least so far.

    For the first `learning_length` tuples of the stream a learner counts, and tuples go to F_1. Then the plan is made
    (`plans`), and from the next tuple on it routes. One learner and one plan serve all sources.

    `base` uint16[keys] is F_1; `hashed` uint32[keys] the part of the hash that gives a key's bucket; `theta` int64[2]
    numerator and denominator. `learner` and `other`: when the number of workers has changed while one is at work, the
    other is the next, of the size that it has to have by then. `rows` is for sorting.

    Departures from the authors' code (the text is not at hand): while learning, tuples go to F_1 instead of nowhere;
    one learner sees the tuples of all sources; it may learn again (`relearn_every`).
    """

    base: NDArray[np.uint16]
    hashed: NDArray[np.uint32]
    live: I64
    theta: I64
    learner: Learner
    other: Learner
    plan: Plan
    rows: I64
    phase: I64
    state_entries: I64
    theta_text: str
    mu: float
    epsilon_factor: float
    learning_length: int
    relearn_every: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker of the plan, or F_1 while there is none."""
        phase = self.phase
        hashed = self.hashed[np.uint64(key)]
        worker = worker_of(self.plan, hashed, key, self.base[np.uint64(key)])
        if phase[_LEFT] == 0:
            forget(self.learner if phase[_NEXT] == 0 else self.other)
            phase[_AT_WORK] = phase[_NEXT]
            phase[_LEARNING] = 1
            phase[_LEFT] = self.learning_length
        phase[_LEFT] -= 1
        if phase[_LEARNING] != 0:
            learner = self.learner if phase[_AT_WORK] == 0 else self.other
            learn(learner, hashed, key, self.state_entries)
            if phase[_LEFT] == 0:
                plan_for(learner, self.plan, self.hashed, self.live, self.theta, self.rows)
                phase[_LEARNING] = 0
                phase[_LEFT] = self.relearn_every if self.relearn_every > 0 else _NEVER
        return worker

    def workers_changed(self, change: WorkersChange, context: Context) -> "DistributionAware":
        """Return what a leaver had to those with the least; the next learner is sized for so many workers."""
        capacity, columns = _sizes(self.theta_text, self.mu, self.epsilon_factor, context.workers)
        phase = self.phase.copy()
        fresh = make_learner(capacity, columns)
        learner, other = _copied(self.learner), _copied(self.other)
        if phase[_LEARNING]:
            phase[_NEXT] = 1 - phase[_AT_WORK]
        else:
            phase[_NEXT] = phase[_AT_WORK]
        learner, other = (fresh, other) if phase[_NEXT] == 0 else (learner, fresh)
        capacity = max(capacity_of(one.tables) for one in (learner, other))
        columns = max(len(one.bucket) for one in (learner, other))
        plan = widened(self.plan, capacity, columns, carry_loads(self.plan.load, change))
        _give_away(plan, change)
        return self._replace(
            base=_first(context),
            live=change.live.copy(),
            theta=_pair(share_of(self.theta_text, context.workers)),
            learner=learner,
            other=other,
            plan=plan,
            rows=_rows(plan, context.workers),
            phase=phase,
            state_entries=self.state_entries.copy(),
        )


def _copied(learner: Learner) -> Learner:
    return Learner(SpaceSaving._make(array.copy() for array in learner.tables), learner.bucket.copy())


def _give_away(plan: Plan, change: WorkersChange) -> None:
    """Move each item of a leaver, in the plan's order, to the live worker with the least planned load."""
    live = set(change.live.tolist())
    for entry in plan.item[: plan.size[ITEMS]]:
        item, worker, load = entry.tolist()
        if worker in live:
            continue
        least = int(change.live[np.argmin(plan.load[change.live])])
        plan.load[least] += load
        entry[1] = least
        if item < plan.size[COLUMNS]:
            plan.owner[item] = least
        else:
            call(put, plan.heavy, item - int(plan.size[COLUMNS]), least)


def _first(context: Context) -> NDArray[np.uint16]:
    return np.ascontiguousarray(context.candidates(1)[:, 0])


def _pair(share: Fraction) -> I64:
    return np.array([share.numerator, share.denominator], dtype=np.int64)


def _sizes(theta: str, mu: float, epsilon_factor: float, workers: int) -> tuple[int, int]:
    """Return the capacity of the table and the number of buckets for so many workers."""
    capacity = ceil(Fraction(str(epsilon_factor)) / share_of(theta, workers))
    if capacity > _MOST_ENTRIES:
        raise UsageError(
            f"rivetti_dkg: epsilon_factor / theta is {capacity} entries, and a table holds up to {_MOST_ENTRIES}",
            "raise theta, or lower epsilon_factor",
        )
    return capacity, ceil(mu * workers)


def _rows(plan: Plan, workers: int) -> I64:
    """Make rows to sort the items of a plan in, and the workers."""
    return np.zeros((2, max(len(plan.item), workers), 3), dtype=np.int64)


def start(params: Params, context: Context) -> DistributionAware:
    """Begin to learn."""
    capacity, columns = _sizes(params.theta, params.mu, params.epsilon_factor, context.workers)
    plan = make_plan(capacity, columns, context.workers)
    return DistributionAware(
        base=_first(context),
        hashed=hashing.sketch_columns(context.hash_lo, 0, 1 << 32).view(np.uint32),
        live=context.live.copy(),
        theta=_pair(share_of(params.theta, context.workers)),
        learner=make_learner(capacity, columns),
        other=make_learner(1, 1),
        plan=plan,
        rows=_rows(plan, context.workers),
        phase=np.array([1, params.learning_length, 0, 0], dtype=np.int64),
        state_entries=np.full(context.sources, columns, dtype=np.int64),
        theta_text=params.theta,
        mu=params.mu,
        epsilon_factor=params.epsilon_factor,
        learning_length=params.learning_length,
        relearn_every=params.relearn_every,
        state_entry_bytes=16,
    )
