"""Full Knowledge: each tuple goes where the least work was sent, costs being known (an oracle)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange
from streamgroup.kernels.ordered.tournament_tree import make_tournament, set_leaf

__all__ = ["CITE", "FullKnowledge", "Params", "ShortestBacklog", "start"]

CITE = ("004",)


class Params(GroupingParams):
    """Parameters of Full Knowledge."""

    backlog: bool = Field(default=False, description="compare the work that is left, not all that was ever sent")

    def sees(self) -> tuple[str, ...]:
        """Of the tuple its cost, of the workers their speed; with `backlog` when they are done, and nothing else."""
        return ("free",) if self.backlog else ("cost", "slowdown")

    def seeds_used(self) -> tuple[str, ...]:
        """The least work decides, and ties go to the lowest id."""
        return ()

    def choices_per_key(self, workers: int) -> int:
        """Any key may go to any worker."""
        return workers


class FullKnowledge(NamedTuple):
    """Online Greedy Scheduling with costs that are known (004, sections III-A and V: "Full Knowledge").

    `work[worker]` (C in 004) int64[N] is the service time in ns of all tuples sent to it, on that worker, rounded as
    the worker rounds it. One for the whole stream, not per source. The worker with the least gets the tuple, ties to
    the lowest id. With k identical workers and all tuples there at once, the last finish is at most (2 - 1/k) times the
    least possible (004, theorem 4.2). Idle time is not counted: a worker that had nothing to do does not catch up.
    The least is the winner of a tournament (`kernels.ordered.tournament_tree`): O(log n) a tuple.

    Departures from the paper: none; when workers change, a joiner starts at the smallest C among the live.
    """

    cost: NDArray[np.float64]
    slowdown: NDArray[np.float64]
    work: NDArray[np.int64]
    tree: NDArray[np.int64]
    winner: NDArray[np.int64]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker with the least work so far and add the tuple's service time there."""
        best = self.winner[0, 1]
        self.work[best] += np.int64(np.rint(self.cost[0] * self.slowdown[best]))
        set_leaf(self.tree, self.winner, 0, best, self.work[best])
        return best

    def workers_changed(self, change: WorkersChange, context: Context) -> "FullKnowledge":
        """Keep the sums of those who stay; a joiner starts at the smallest of them."""
        return _full_knowledge(context, carry_loads(self.work, change))


class ShortestBacklog(NamedTuple):
    """The worker that is done first with what it was sent: argmin of max(now, free), ties to the lowest id.

    Join the shortest remaining work: a stricter oracle than the paper's, since it knows that an idle worker is idle.
    `free[worker]` int64[N] is the loop's own array, tuples that are still on the network included. O(n) a tuple.

    Departures from the paper: it has no such rule; its Full Knowledge is `FullKnowledge`.
    """

    free: NDArray[np.int64]
    live: NDArray[np.int64]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker that is done first; all that are idle are equal."""
        best = self.live[0]
        least = max(now, self.free[best])
        for place in range(1, self.live.shape[0]):
            worker = self.live[place]
            done = max(now, self.free[worker])
            if done < least:
                best = worker
                least = done
        return best

    def workers_changed(self, change: WorkersChange, context: Context) -> "ShortestBacklog":
        """Look at the live workers from now on."""
        assert context.free is not None
        return self._replace(free=context.free, live=change.live.copy())


def _full_knowledge(context: Context, work: NDArray[np.int64]) -> FullKnowledge:
    assert context.cost is not None
    assert context.slowdown is not None
    tree, winner = make_tournament(work[np.newaxis], context.live)
    return FullKnowledge(
        context.cost, context.slowdown, work, tree, winner, state_entries=context.workers, state_entry_bytes=8
    )


def start(params: Params, context: Context) -> FullKnowledge | ShortestBacklog:
    """Take the loop's live arrays; nothing has been sent."""
    if params.backlog:
        assert context.free is not None
        live = np.arange(context.workers, dtype=np.int64)
        return ShortestBacklog(context.free, live, state_entries=0, state_entry_bytes=8)
    return _full_knowledge(context, np.zeros(context.workers, dtype=np.int64))
