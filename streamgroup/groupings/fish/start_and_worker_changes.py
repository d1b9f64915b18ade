"""FISH's state as it starts and as it goes on when workers come and go."""

import numpy as np

from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.fish.backlogs import Backlogs
from streamgroup.groupings.fish.candidate_workers import Shortlists, make_shortlists
from streamgroup.groupings.fish.count_and_widen import OPTIMAL, FishCore, Widths
from streamgroup.groupings.fish.decayed_space_saving import SIZE, WIDTH, DecayedTable
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.hash_placement import candidate_words, ring_positions
from streamgroup.kernels.hash_ring import first_point, first_two, make_ring

__all__ = ["changed_core", "shortlists_of", "start_core"]


def shortlists_of(context: Context, vnodes: int) -> Shortlists:
    """Find where keys may go: by a ring of the live workers, or, with no virtual nodes, by F_1, F_2, ..."""
    if vnodes > 0:
        ring = make_ring(context.live, vnodes)
        point = first_point(ring, ring_positions(context.hash_lo))
        none = np.empty((0, 2), dtype=np.uint64)
        return make_shortlists(first_two(ring), context.live, point, ring.owner, none)
    words = candidate_words(context.hash_lo, context.hash_hi, context.hash_seed)
    nearest = context.candidates(2).copy()
    if context.workers == 2:
        # These two are all workers, also where F_1 and F_2 coincide.
        nearest[:, 1] = context.live.sum() - nearest[:, 0]
    no_point, no_owner = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16)
    return make_shortlists(nearest, context.live, no_point, no_owner, words)._replace(modulo=context.params.modulo())


def start_core(context: Context, vnodes: int, table: DecayedTable, widths: Widths, backlogs: Backlogs) -> FishCore:
    """Start with nothing counted."""
    return FishCore(
        table,
        widths,
        shortlists_of(context, vnodes),
        backlogs,
        choices=np.zeros(1, dtype=np.int64),
        entries=np.full(context.sources, context.workers, dtype=np.int64),
        tracked=np.zeros(1, dtype=np.int64),
    )


def changed_core(core: FishCore, change: WorkersChange, context: Context, vnodes: int, theta: float) -> FishCore:
    """Go on with other workers: no key's width is more than they are, and backlogs are carried (`carry_loads`)."""
    workers = context.workers
    info = core.table.info.copy()
    np.minimum(info[:, :, WIDTH], workers, out=info[:, :, WIDTH])
    planned = core.widths.planned.copy()
    if core.widths.head == OPTIMAL:
        np.minimum(planned, workers, out=planned)
    left = carry_loads(core.backlogs.left, change)
    fresh = core.backlogs.fresh
    if core.backlogs.is_literal:
        fresh = np.zeros_like(left)
        fresh[:, : core.backlogs.fresh.shape[1]] = core.backlogs.fresh
    time_per_tuple = np.ones(left.shape[1])
    time_per_tuple[: len(core.backlogs.time_per_tuple)] = core.backlogs.time_per_tuple
    return core._replace(
        table=core.table._replace(info=info),
        widths=core.widths._replace(planned=planned, theta=theta, workers=workers),
        shortlists=shortlists_of(context, vnodes),
        backlogs=core.backlogs._replace(
            left=left,
            fresh=fresh,
            cost=left * time_per_tuple,
            time_per_tuple=time_per_tuple,
            floor=np.full(len(left), -1.0),
            live=change.live.copy(),
        ),
        entries=core.table.numbers[:, SIZE] + workers,
    )
