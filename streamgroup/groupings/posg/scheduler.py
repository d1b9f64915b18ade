"""The state machine of POSG's sources (004, figure 3): what they do when sketches and replies arrive."""

from typing import Any

import numpy as np

from streamgroup.groupings.posg import count_min
from streamgroup.groupings.posg.sketches_in_flight import NEVER
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.ordered.tournament_tree import set_leaf

__all__ = [
    "CARRIER",
    "EPOCH",
    "KNOWN",
    "LEFT",
    "MARKED",
    "MARK_EPOCH",
    "POINTER",
    "REPLIES",
    "REPLYING",
    "REPLY_EPOCH",
    "ROUND_ROBIN",
    "RUN",
    "SEND_ALL",
    "STATE",
    "TURN",
    "WAIT_ALL",
    "begin_epoch",
    "reply_arrives",
    "sketch_arrives",
]

# States of a source.
ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = range(4)
# Columns of `plan`: state, epoch, place in the list of the live (of round robin, and of SEND_ALL), replies that came in
# this epoch, tuples left in RUN before it synchronises by itself.
STATE, EPOCH, POINTER, TURN, REPLIES, LEFT = range(6)
# Columns of `marks`: number of the tuple that carries the newest marker, its epoch, the epoch of the reply on the way.
CARRIER, MARK_EPOCH, REPLY_EPOCH = range(3)
# Columns of `gaps`: C_hat in the marker, Delta of the reply on the way, Delta that came.
MARKED, REPLYING, REPLIED = range(3)
# Column of the workers' `counters`: whether a sketch of theirs has come.
KNOWN = 6


@njit(forceinline=True)
def begin_epoch(plan: Any, source: Any) -> None:
    """Let a source send markers to all workers."""
    plan[source, STATE] = SEND_ALL
    plan[source, EPOCH] += 1
    plan[source, TURN] = 0
    plan[source, REPLIES] = 0


@njit
def sketch_arrives(posg: Any, cells: Any, place: Any, worker: Any) -> None:
    """Take a worker's sketch, `cells[place]`, at all sources; those that know all workers begin an epoch."""
    plan = posg.plan
    count_min.take_means(cells, place, posg.columns, posg.means, worker, posg.unseen_is_zero)
    posg.unknown[0] -= 1 - posg.counters[worker, KNOWN]
    posg.counters[worker, KNOWN] = 1
    for s in range(plan.shape[0]):
        if posg.unknown[0] == 0 or plan[s, STATE] != ROUND_ROBIN:
            begin_epoch(plan, s)


@njit
def reply_arrives(posg: Any, source: Any, worker: Any) -> None:
    """Take a worker's reply at a source: one of an earlier epoch is dropped, the last of this one ends it."""
    plan, s = posg.plan, source
    waits = plan[s, STATE] in (SEND_ALL, WAIT_ALL)
    if waits and posg.marks[s, worker, REPLY_EPOCH] == plan[s, EPOCH]:
        posg.gaps[s, worker, REPLIED] = posg.gaps[s, worker, REPLYING]
        plan[s, REPLIES] += 1
        if plan[s, REPLIES] == posg.live.shape[0]:
            half = posg.assigned.shape[1] >> 1
            for one in range(posg.live.shape[0]):
                w = posg.live[one]
                total = posg.assigned[s, half + w] + posg.gaps[s, w, REPLIED]
                set_leaf(posg.assigned, posg.least, s, w, total)
            plan[s, STATE] = RUN
            resync = posg.resync * posg.live.shape[0]
            plan[s, LEFT] = resync if resync > 0 else np.int64(NEVER)
