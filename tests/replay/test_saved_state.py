"""A source's state, saved and restored at any place, goes on with the decisions it would have made."""

import numpy as np
import pytest

from streamgroup.base.errors import DataError
from streamgroup.replay.online.decider import Decider
from streamgroup.replay.online.deliver_finished_tuples import Finishes
from streamgroup.replay.online.saved_state import restore, save
from streamgroup.replay.online.state_fields import is_cache, leaves
from streamgroup.replay.scenario.grouping_selection import family
from streamgroup.replay.scenario.options import ReplayOptions
from tests.replay.test_online import ALONE, NEVER, ONE_SOURCE, OTHERS

N, TUPLES, BATCH = 4, 900, 150


def stream() -> tuple[list[bytes | None], np.ndarray]:
    draws = np.random.default_rng(5)
    keys: list[bytes | None] = [b"%d" % min(key, 250) for key in draws.zipf(1.4, TUPLES)]
    return keys, np.cumsum(draws.integers(0, 500_000, TUPLES))


def started(name: str) -> Decider:
    sources = 1 if name in ONE_SOURCE else 2
    options = ReplayOptions(ALONE.get(name, name), N, sources=sources, control_delay="1ms")
    return Decider(options, sources - 1, interpreted=True)


def decided(decider: Decider, keys: list[bytes | None], now: np.ndarray) -> list[int]:
    found = decider.many(decider.ids(keys), now).worker
    if decider.grouping.has_feedback:
        ids = decider.ids(keys).astype(np.int64)
        decider.finished(Finishes(found.astype(np.int64), ids, now, now + 10, now + 300_000))
    return found.tolist()


@pytest.mark.many_groupings
@pytest.mark.parametrize("name", sorted({*family(), *OTHERS} - NEVER))
def test_a_restored_decider_goes_on(name: str) -> None:
    keys, now = stream()
    whole = started(name)
    expected, found = [], []
    other = started(name)
    for begin in range(0, TUPLES, BATCH):
        span = slice(begin, begin + BATCH)
        expected += decided(whole, keys[span], now[span])
        found += decided(other, keys[span], now[span])
        data = save(other)
        assert data == save(other)
        other = started(name)
        if begin == 2 * BATCH:
            # With more keys than there is room for at first.
            more: list[bytes | None] = [b"more-%d" % i for i in range(5000)]
            whole.ids(more)
            restore(other, data)
            other.ids(more)
            data = save(other)
            other = started(name)
        restore(other, data)
    assert found == expected
    assert other.largest_state == whole.largest_state
    for (path, one), (_, two) in zip(leaves(whole.grouping.state), leaves(other.grouping.state), strict=True):
        assert type(one) is type(two), path
        if is_cache(whole.grouping.state, path):
            assert one.shape == two.shape, path
        elif isinstance(one, np.ndarray):
            # Compiled code takes other flags for another type.
            assert (one.dtype, one.flags.writeable, one.flags.c_contiguous) == (
                two.dtype, two.flags.writeable, two.flags.c_contiguous,
            ), path  # fmt: skip
            # How often lists of the cache were made.
            assert np.array_equal(one, two) or path[-1] in ("seen", "stamp"), path
        else:
            assert one == two, path


def test_a_state_of_another_grouping_is_refused() -> None:
    data = save(started("pkg"))
    with pytest.raises(DataError, match="-g pkg and source 1, and not of format 1, -g kg and source 1"):
        restore(started("kg"), data)
