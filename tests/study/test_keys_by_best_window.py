"""Keys by their best window, against a recount by its definition."""

import random
from collections import Counter, defaultdict
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.study.keys_by_best_window import find_peaks
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import Tuple, write_trace


def _window(over: str, at: int, stamp: int, tuples: int) -> int:
    if over.endswith("%"):
        return int(Fraction(at) / (Fraction(over[:-1]) / 100 * tuples))
    if over.isdigit():
        return at // int(over)
    return stamp // (int(over.removesuffix("s")) * 1_000_000)


def _naive(rows: list[Tuple], over: str) -> list[tuple[str | None, float, float, int, int]]:
    """Key, share, peak share, first tuple and tuples of its window, for all keys, the largest peak first."""
    begin = rows[0][0]
    numbers = [_window(over, at, stamp - begin, len(rows)) for at, (stamp, _, _) in enumerate(rows)]
    windows: dict[int, Counter[bytes | None]] = defaultdict(Counter)
    for number, (_, key, _) in zip(numbers, rows, strict=True):
        windows[number][key] += 1
    if over.endswith("%"):
        most = min(len(rows), numbers[-1] + 1)
    elif over.isdigit():
        most = ceil(len(rows) / int(over))
    else:
        most = min(len(rows), numbers[-1] + 1)
    few = len(rows) // most / 10
    count = Counter(key for _, key, _ in rows)
    ids = {key: at for at, key in enumerate(sorted(count, key=lambda key: (-count[key], key is not None, key or b"")))}
    best: dict[bytes | None, tuple[float, int]] = {}
    for number, found in windows.items():
        if found.total() < few:
            continue
        for key, tuples in found.items():
            if key not in best or tuples / found.total() > best[key][0]:
                best[key] = (tuples / found.total(), number)
    ranked = sorted(best, key=lambda key: (-best[key][0], -count[key], ids[key]))
    return [
        (
            None if key is None else key.decode(),
            count[key] / len(rows),
            best[key][0],
            numbers.index(best[key][1]),
            windows[best[key][1]].total(),
        )
        for key in ranked
    ]


@pytest.mark.parametrize("over", ["7s", "100s", "13", "3%", "50%", "1"])
@pytest.mark.parametrize("keys", [3, 400])
def test_against_a_recount(over: str, keys: int, tmp_path: Path) -> None:
    draw = random.Random(keys)
    stamps = sorted(5_000_000 + draw.randrange(100_000_000) ** 2 // 100_000_000 for _ in range(600))
    rows: list[Tuple] = [
        (stamp, None if key == 0 else f"k{key}".encode(), None)
        for stamp, key in zip(stamps, (int(draw.random() ** 3 * keys) for _ in stamps), strict=True)
    ]
    found = find_peaks(open_trace(write_trace(tmp_path / "t", rows, parts=3)), over, 1000)
    wanted = _naive(rows, over)
    assert [(one.key, one.share, one.peak_share, one.first_tuple, one.window_tuples) for one in found] == wanted
    for one in found:
        last = rows[one.first_tuple + one.window_tuples - 1][0]
        assert one.from_timestamp is not None
        assert one.to_timestamp is not None
        if over.endswith("s"):
            assert one.from_timestamp <= rows[one.first_tuple][0] <= last < one.to_timestamp
            assert one.to_timestamp - one.from_timestamp == int(over[:-1]) * 1_000_000
        else:
            assert (one.from_timestamp, one.to_timestamp) == (rows[one.first_tuple][0], last)


def test_a_key_of_an_hour_is_not_missed(tmp_path: Path) -> None:
    """Its share of the day is smaller than that of all keys which are listed by that."""
    day: list[Tuple] = [(at * 864_000, f"k{at % 50}".encode(), None) for at in range(100_000)]
    day[50_000:50_250] = [(stamp, b"hour", None) for stamp, _, _ in day[50_000:50_250]]
    found = find_peaks(open_trace(write_trace(tmp_path / "t", day)), "1h", 1)[0]
    assert (found.key, found.share) == ("hour", 0.0025)
    assert found.peak_share == pytest.approx(250 / 4167, rel=1e-3)
    assert (found.from_timestamp, found.to_timestamp) == (12 * 3_600_000_000, 13 * 3_600_000_000)


def test_a_window_of_few_tuples_counts_for_nothing(tmp_path: Path) -> None:
    rows: list[Tuple] = [(at * 1000, b"ab"[at % 2 : at % 2 + 1], None) for at in range(1000)]
    rows.append((1_500_000, b"late", None))
    found = find_peaks(open_trace(write_trace(tmp_path / "t", rows)), "1s", 5)
    assert [one.key for one in found] == ["a", "b"]


def test_lengths_that_make_no_sense(tmp_path: Path) -> None:
    trace = open_trace(write_trace(tmp_path / "t", [(0, b"a", None)]))
    for over in ("0s", "x", "0"):
        with pytest.raises(UsageError, match="--over"):
            find_peaks(trace, over, 1)
    assert find_peaks(trace, "1s", 0) == []
    assert find_peaks(open_trace(write_trace(tmp_path / "none", [])), "1s", 1) == []
