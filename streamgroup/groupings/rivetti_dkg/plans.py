"""A plan that gives every key one worker: heavy keys one by one, all others by bucket (Rivetti et al., DEBS 2015).

A learner counts the tuples of a part of the stream: SpaceSaving for the frequent keys, a counter for each bucket of
keys. From these a plan is made by longest processing time first: heavy keys and buckets, by falling load, each to the
worker with the least so far. (At most 4/3 - 1/(3n) times the least possible maximum: Graham 1969.)

The items of a plan are numbers: 0..columns - 1 are buckets, columns + key is a heavy key.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgroup.kernels.int_map import enlarged, get, make_int_map, put
from streamgroup.kernels.space_saving import (
    SpaceSaving,
    entry_at,
    forget_all,
    make_space_saving,
    offer,
    places,
    used,
)
from streamgroup.kernels.top_k import in_order, keep_best, sink

__all__ = [
    "COLUMNS",
    "ITEMS",
    "Learner",
    "Plan",
    "bucket_of",
    "forget",
    "learn",
    "make_learner",
    "make_plan",
    "plan_for",
    "widened",
    "worker_of",
]

I64 = NDArray[np.int64]

ITEM, WORKER, LOAD = range(3)
ITEMS, COLUMNS = range(2)
_32 = np.uint64(32)


class Learner(NamedTuple):
    """What was learned so far: `tables` of one source, and `bucket` int64[columns], tuples of each bucket of keys."""

    tables: SpaceSaving
    bucket: I64


class Plan(NamedTuple):
    """Who gets what.

    `item` int64[room, 3]: item, worker, load, in the order in which they were given away; `owner` int64[columns]:
    worker of each bucket; `heavy` maps a heavy key to its worker; `load` int64[N]: what each worker was given; `size`
    int64[2]: items, and columns (0: there is no plan).
    """

    item: I64
    owner: I64
    heavy: I64
    load: I64
    size: I64


def make_learner(capacity: int, columns: int) -> Learner:
    """Make a learner that has seen nothing; capacity 1..2^24."""
    return Learner(make_space_saving(1, capacity), np.zeros(columns, dtype=np.int64))


def make_plan(capacity: int, columns: int, workers: int) -> Plan:
    """Make room for a plan of up to `capacity` heavy keys and `columns` buckets, for worker ids below `workers`."""
    return Plan(
        item=np.zeros((capacity + columns, 3), dtype=np.int64),
        owner=np.zeros(columns, dtype=np.int64),
        heavy=make_int_map(capacity),
        load=np.zeros(workers, dtype=np.int64),
        size=np.zeros(2, dtype=np.int64),
    )


def widened(plan: Plan, capacity: int, columns: int, load: I64) -> Plan:
    """Copy a plan with `load` in place of its loads, and with room for another of this size."""
    wide = Plan(
        item=np.zeros((max(capacity + columns, len(plan.item)), 3), dtype=np.int64),
        owner=np.zeros(max(columns, len(plan.owner)), dtype=np.int64),
        heavy=enlarged(plan.heavy, max(capacity, len(plan.heavy) // 2)),
        load=load.copy(),
        size=plan.size.copy(),
    )
    wide.item[: len(plan.item)] = plan.item
    wide.owner[: len(plan.owner)] = plan.owner
    return wide


@njit(forceinline=True)
def bucket_of(hashed: Any, columns: Any) -> Any:
    """Return a key's bucket from `hashed`, the upper 32 bits of its hash: the column of a sketch, 0..columns - 1."""
    return np.int64((np.uint64(hashed) * np.uint64(columns)) >> _32)


@njit(forceinline=True)
def worker_of(plan: Any, hashed: Any, key: Any, otherwise: Any) -> Any:
    """Return the worker that a plan sends a key to, `otherwise` if there is no plan."""
    if plan.size[COLUMNS] == 0:
        return np.int64(otherwise)
    worker = get(plan.heavy, key)
    return plan.owner[np.uint64(bucket_of(hashed, plan.size[COLUMNS]))] if worker < 0 else worker


@njit
def learn(learner: Any, hashed: Any, key: Any, state_entries: Any) -> None:
    """Count a tuple; `state_entries` int64[sources] are set to the entries and buckets that there are."""
    offer(learner.tables, np.int64(0), key, True)
    learner.bucket[bucket_of(hashed, learner.bucket.shape[0])] += 1
    entries = used(learner.tables, 0) + learner.bucket.shape[0]
    if entries != state_entries[0]:
        state_entries[:] = entries


@njit
def forget(learner: Any) -> None:
    """Start anew."""
    forget_all(learner.tables)
    learner.bucket[:] = 0


@njit
def plan_for(learner: Any, plan: Any, hashed: Any, live: Any, theta: Any, rows: Any) -> None:
    """Make the plan from what was learned; the counters of buckets lose what their heavy keys have.

    A key is heavy if (count - error) x theta[1] >= theta[0] x the tuples that were learned. Among items of equal load
    buckets come before keys, and lower numbers first; of equal workers the lowest. `hashed` uint32[keys]; `rows`
    int64[2, room, 3] is for sorting, with room for all items and for all of `live` int64[n].
    """
    tables, bucket, items, heap = learner.tables, learner.bucket, rows[0], rows[1]
    columns = bucket.shape[0]
    learned = np.int64(0)
    for column in range(columns):
        learned += bucket[column]
    size = np.int64(0)
    for number in range(places(tables)):
        key, count, error = entry_at(tables, np.int64(0), number)
        load = count - error
        if key >= 0 and load * theta[1] >= theta[0] * learned:
            keep_best(items, size, items.shape[0], load, columns + key, columns + key)
            bucket[bucket_of(hashed[key], columns)] -= load
            size += 1
    for column in range(columns):
        keep_best(items, size, items.shape[0], bucket[column], column, column)
        size += 1
    in_order(items, size)
    # A heap with the least loaded worker, of these the lowest, at its root: what ranks last.
    for place in range(live.shape[0]):
        keep_best(heap, place, live.shape[0], 0, -live[place], live[place])
    plan.heavy[:] = 0
    plan.load[:] = 0
    for place in range(size):
        worker = heap[0, 2]
        plan.item[place, ITEM] = items[place, 2]
        plan.item[place, WORKER] = worker
        plan.item[place, LOAD] = items[place, 0]
        if items[place, 2] < columns:
            plan.owner[items[place, 2]] = worker
        else:
            put(plan.heavy, items[place, 2] - columns, worker)
        plan.load[worker] += items[place, 0]
        heap[0, 0] += items[place, 0]
        sink(heap, live.shape[0])
    plan.size[ITEMS] = size
    plan.size[COLUMNS] = columns
