"""What parameters may size: a start that would take too much memory names the one to lower, and allocates nothing."""

import tracemalloc

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_CELLS, MOST_WORKERS
from streamgroup.groupings import posg
from streamgroup.groupings.fish import decayed_space_saving
from streamgroup.kernels.counts import space_saving
from streamgroup.replay.scenario.grouping_selection import select
from tests.groupings.contexts_and_worker_changes import context


@pytest.mark.parametrize(
    ("text", "workers", "sources", "hint"),
    [
        ("consistent_grouping:virtual=4096", 5000, 1, "lower virtual"),
        ("consistent_grouping:virtual=4096", 1000, 1000, "lower virtual"),
        ("posg:rows=64,columns=65536", 10, 1, "lower columns or rows"),
        ("fish:capacity=1000000", 5, 100, "lower capacity"),
        ("fish:capacity=1000000,hwa=false", 5, 100, "lower capacity"),
        ("fish:interval=1ns", 5000, 1, "raise interval, or lower --control-delay"),
        ("w_choices:capacity=16777216", 5, 10, "set a lower capacity, or raise theta"),
        ("d_choices:theta=1/4096n", 4000, 10, "set a lower capacity, or raise theta"),
        ("dstream:counters=536870912", 5, 1, "lower counters"),
        ("cm:window=1000s", 5000, 100, "raise slide, or lower window"),
        ("dalton:capacity=65536", 1000, 5, "lower capacity"),
    ],
)
def test_what_would_be_too_large_is_refused(text: str, workers: int, sources: int, hint: str) -> None:
    selection = select(text)
    told = context(list(range(workers)), sources)._replace(keys=1 << 30, control_delay=1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="cells of memory") as error:
            selection.module.start(selection.params, told)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert error.value.hint == hint


@pytest.mark.parametrize("capacity", [1, 5, 1000, 1024, 1025])
def test_tables_take_what_is_counted(capacity: int) -> None:
    for taken, tables in (
        (space_saving.cells_taken(3, capacity), space_saving.make_space_saving(3, capacity)),
        (decayed_space_saving.cells_taken(3, capacity), decayed_space_saving.make_table(3, capacity, 0.5, 10)),
    ):
        octets = sum(part.nbytes for part in tables if hasattr(part, "nbytes"))
        # But for a few numbers of each source.
        assert 0 <= octets - 8 * taken <= 3 * 8 * 16


def test_the_most_workers_have_room_with_the_defaults() -> None:
    assert posg._NUMBERS * MOST_WORKERS * 4 * 54 <= MOST_CELLS
    assert space_saving.cells_taken(5, 2 * 5 * MOST_WORKERS) <= MOST_CELLS
