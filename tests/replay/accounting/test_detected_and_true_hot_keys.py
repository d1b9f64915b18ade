"""Hot keys by hand: windows, delays and pending keys, as METRICS says; and the same in both loops, compiled or not."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.accounting.detected_and_true_hot_keys import Hotness, follow
from streamgroup.replay.accounting.outcome import HotKeys
from streamgroup.replay.compile_grouping import COMMON, compiled
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.replay.hooks.test_every_grouping_conforms import same
from tests.traces_by_hand import write_trace

BY_COUNTS = str(Path(__file__).parents[1] / "groupings_outside_package" / "by_counts.py")
KEYS = "abcd"


def followed(
    text: str, share: Fraction = Fraction(1, 2), *, times: list[int] | None = None, run: Callable[..., None] = follow,
    warmup: int = 0, piece: int = 1000,
) -> Hotness:  # fmt: skip
    """Follow windows written as words: a tuple is its key, large where treated as hot, and then - where dropped."""
    words = text.split()
    tuples: list[str] = []
    ends = []
    for word in words:
        ends.append(len(tuples))
        for letter in word:
            if letter == "-":
                tuples[-1] += "-"
            else:
                tuples.append(letter)
    # The first window begins after the warm-up, without an end before it.
    borders = [end for end in ends[1:] if end > warmup]
    keys = np.array([KEYS.index(one[0].lower()) for one in tuples], dtype=np.uint32)
    allowed = np.array([-1 if "-" in one else 3 * one[0].isupper() for one in tuples], dtype=np.int32)
    arrival = np.array(times if times is not None else [10 * i for i in range(len(tuples))], dtype=np.int64)
    found = Hotness(run, len(KEYS), share)
    for first in range(0, len(tuples), piece):
        last = min(first + piece, len(tuples))
        inside = [end - first for end in borders if first <= end < last]
        skip = min(max(warmup - first, 0), last - first)
        found.add(
            keys[first:last], arrival[first:last], allowed[first:last], first, skip, np.array(inside, dtype=np.int64)
        )
    found.end()
    return found


def rows(found: HotKeys) -> list[tuple[int, int, int]]:
    return list(zip(found.treated.tolist(), found.hot.tolist(), found.both.tolist(), strict=True))


CASES: dict[str, tuple[str, list[tuple[int, int, int]], tuple[int, int]]] = {
    # windows, (treated, hot, both) of each, (times detected, tuples that took)
    "found within its window": ("aabA bbbb", [(1, 1, 1), (0, 1, 0)], (1, 3)),
    "found in a later window": ("aaab bbbc cAab", [(0, 1, 0), (0, 1, 0), (1, 1, 1)], (2, 9 + 1)),
    "hot twice before it is found": ("aaab bbbc aaac bbbA", [(0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 1, 0)], (2, 15 + 7)),
    "still hot: it became so once": ("aaab aaab Aaab", [(0, 1, 0), (0, 1, 0), (1, 1, 1)], (1, 8)),
    "never found": ("aaab bbcc", [(0, 1, 0), (0, 2, 0)], (0, 0)),
    "known before its window": ("bbbA aaac", [(1, 1, 0), (0, 1, 0)], (1, 0)),
    "forgotten before its window": ("bbbbAa aaac", [(1, 1, 0), (0, 1, 0)], (0, 0)),
    "treated as hot without need": ("aBCd", [(2, 0, 0)], (0, 0)),
    "at the share exactly": ("aabc Aaab", [(0, 1, 0), (1, 1, 1)], (1, 4)),
    "dropped tuples are none": ("A-a-bb abA-", [(0, 1, 0), (0, 2, 0)], (0, 0)),
    "all of a window dropped": ("aA b-b-b- aacc", [(1, 1, 1), (0, 0, 0), (0, 2, 0)], (2, 1)),
    "a window begins with a dropped tuple": ("bc d-aaA", [(0, 2, 0), (1, 1, 1)], (1, 3)),
}


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize("case", CASES)
def test_windows_by_hand(case: str, piece: int) -> None:
    text, expected, (detected, tuples) = CASES[case]
    found = followed(text, piece=piece).found()
    assert rows(found) == expected
    assert (found.detected, found.delay_tuples, found.delay_ns) == (detected, tuples, 10 * tuples)


def test_compiled_is_the_same() -> None:
    run = compiled(follow, COMMON)
    for text, expected, (detected, tuples) in CASES.values():
        found = followed(text, run=run, piece=3).found()
        assert rows(found) == expected
        assert (found.detected, found.delay_tuples, found.delay_ns) == (detected, tuples, 10 * tuples)


@pytest.mark.parametrize("piece", [1, 2, 1000])
def test_of_warm_up_only_the_last_treatment_counts(piece: int) -> None:
    known = followed("Ab aab", warmup=2, piece=piece)
    assert rows(known.found()) == [(0, 1, 0)]
    assert (known.found().detected, known.found().delay_tuples) == (1, 0)
    assert not known.was_hot(0)
    assert known.choices(1).tolist() == [1, 1, 0, 0]
    forgotten = followed("Aa aab", warmup=2, piece=piece)
    assert forgotten.found().detected == 0


def test_the_number_of_workers_that_the_last_tuple_of_a_key_was_given() -> None:
    found = followed("aAbCbBcc")
    assert found.choices(1).tolist() == [3, 3, 1, 0]
    assert found.choices(5).tolist() == [3, 3, 5, 0]
    # whatever it was ever treated as
    assert [found.was_hot(key) for key in range(4)] == [True, True, True, False]
    # also in an earlier window, and dropped tuples are none
    assert followed("Aab Bc- c-a-", share=Fraction(1, 9)).choices(1).tolist() == [1, 3, 0, 0]


def test_sums_of_delays_pass_what_an_integer_of_64_bits_holds() -> None:
    """A key that becomes hot in every other window, found at the end of the clock."""
    late = (1 << 62) - 1
    text = "a b " * 9 + "A"
    found = followed(text, times=[*range(18), late]).found()
    # It became hot with tuples 0, 2, .. 18; b is never found.
    starts = [*range(0, 18, 2), late]
    assert found.detected == 10
    assert found.delay_ns == sum(late - start for start in starts)
    assert found.delay_ns > 1 << 64


@pytest.mark.parametrize("share", [Fraction(0), Fraction(3, 2), Fraction(1, (1 << 30) + 1)])
def test_a_share_that_is_none(share: Fraction) -> None:
    with pytest.raises(UsageError, match=r"hot_share\(\) gave"):
        Hotness(follow, 3, share)


@pytest.mark.parametrize(
    "options", [{}, {"queue_capacity": 2, "when_full": "drop"}, {"leave": ("40%",), "warmup": "9%"}]
)
def test_both_loops_compiled_as_interpreted(tmp_path: Path, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    keys = (rng.zipf(1.3, 4000) % 90).tolist()
    times = np.cumsum(rng.integers(0, 90, 4000)).tolist()
    trace = open_trace(
        write_trace(tmp_path / "t", [(at, b"k%d" % key, None) for at, key in zip(times, keys, strict=True)])
    )
    given = ReplayOptions(f"{BY_COUNTS}:parts=30", workers=6, service="210us", **options)
    fast, slow = replay(trace, given), replay(trace, given, interpreted=True)
    same(fast, slow)
    found = summary(fast)
    assert found["hot_detection_delay_tuples"] is not None
    assert 0 < (found["hot_precision"] or 0) < 1
    assert 0 < (found["hot_recall"] or 0) <= 1
    assert (found["memory_estimate"] or 0) > trace.keys


def test_without_a_detector_nothing_is_known(tmp_path: Path) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(i, b"a", None) for i in range(30)]))
    found = replay(trace, ReplayOptions("kg", workers=3), interpreted=True)
    assert found.hot_keys is None
    assert found.key_choices is None
    assert [key.hot for key in found.top_keys] == [None]
