"""SpaceSaving, D-Choices, W-Choices and their kin: the worked examples, traces by hand, changes of workers."""

import itertools
import json
import random
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from tests.naive.detectors.counts import SpaceSavingDetector
from tests.naive.groupings.grouping_by_text import make
from tests.naive.groupings.hot_key_groupings import DChoices, GreedyDHead, HeadGrouping, Rr, WChoices
from tests.naive.groupings.simple_groupings import Grouping, Pkg, Setting, WorkersChange
from tests.naive.kernels.optimal_choices import Shares, find_d, shares_of_counts, shares_of_weights, workers_hit
from tests.naive.kernels.space_saving import SpaceSaving
from tests.naive.option_texts import truth
from tests.naive.replay.simulate import simulate
from tests.naive.share_threshold import share

DATA = Path(__file__).parents[2] / "data"
EXAMPLES = {e["id"]: e for e in json.loads((DATA / "examples.json").read_text())}


def example(name: str) -> tuple[Any, Any]:
    return EXAMPLES[name]["input"], EXAMPLES[name]["expected"]


def contents(table: SpaceSaving) -> dict[str, list[float]]:
    return {(key or b"").decode(): [entry.count, entry.error] for key, entry in table.table.items()}


def zipf(z: float, keys: int) -> list[float]:
    weights = [i**-z for i in range(1, keys + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def sent(grouping: Grouping, keys: Iterable[str]) -> list[int]:
    return [grouping.choose(0, key.encode(), 0) for key in keys]


def stream(count: int, z: float = 1.2, seed: int = 1) -> list[bytes]:
    keys = [str(key).encode() for key in range(50)]
    return random.Random(seed).choices(keys, [(i + 1) ** -z for i in range(50)], k=count)


@pytest.mark.parametrize(
    ("text", "n", "value"),
    [
        ("0.02", 10, (1, 50)),
        ("1/50", 10, (1, 50)),
        ("1/4n", 10, (1, 40)),
        ("1/(4n)", 10, (1, 40)),
        (" 2 / n ", 10, (1, 5)),
        ("2/n", 1, (1, 1)),
    ],
)
def test_shares(text: str, n: int, value: tuple[int, int]) -> None:
    assert share(text, n).as_integer_ratio() == value


@pytest.mark.parametrize("text", ["0", "-0.1", "1/4m", "1/1073741825", "0/n"])
def test_shares_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"share|literal"):
        share(text, 3)


@pytest.mark.parametrize("name", ["SS-01", "SS-02"])
def test_space_saving(name: str) -> None:
    given, expected = example(name)
    table = SpaceSaving(given["capacity"])
    for key, line in zip(given["stream"], expected["trace"], strict=True):
        table.offer(key.encode())
        assert contents(table) == json.loads(line.partition(" ")[2])
    final = {key: [entry["count"], entry["error"]] for key, entry in expected["final"].items()}
    assert contents(table) == final


def test_space_saving_bounds_what_is_true() -> None:
    table, true = SpaceSaving(7), dict.fromkeys(stream(2000), 0)
    for number, key in enumerate(stream(2000), start=1):
        table.offer(key)
        true[key] += 1
        assert sum(entry.count for entry in table.table.values()) == number
        for k, entry in table.table.items():
            assert entry.count - entry.error <= true[k] <= entry.count
            assert entry.error <= number / 7


def test_without_replacement_a_full_table_stays() -> None:
    table = SpaceSaving(2, replacement=False)
    for key in "abccca":
        table.offer(key.encode())
    assert contents(table) == {"a": [2, 0], "b": [1, 0]}
    assert table.offered == 6
    assert table.estimate(b"c") == 0


def test_estimates() -> None:
    table = SpaceSaving(1)
    for key in "aab":
        table.offer(key.encode())
    assert [table.estimate(b"b", kind) for kind in ("count", "count+error", "count-error")] == [3, 5, 1]


def test_dc_01() -> None:
    given, expected = example("DC-01")
    n = given["n"]
    for h, d in given["cases"]:
        assert workers_hit(n, h, d) * n == pytest.approx(expected[f"h={h},d={d}"], abs=1e-6)


@pytest.mark.parametrize("case", EXAMPLES["DC-02"]["expected"])
def test_dc_02(case: dict[str, Any]) -> None:
    n, head = case["n"], case["head"]
    shares = shares_of_weights(head, 1.0)
    assert shares.tail == pytest.approx(case["p_tail"])
    counts = [round(100 * p) for p in head]
    assert find_d(shares, n) == find_d(shares_of_counts(counts, 100), n) == case["d_paper_h1_hH"]
    assert find_d(shares_of_counts(counts, 100, "all"), n) == case["d_paper_all_prefixes"]
    assert find_d(shares, n, start="round", slack="plain") == case["d_shipped_code"]
    # with any slack the start is the answer
    assert find_d(shares, n, eps=1.0) == case["start"]


@pytest.mark.parametrize("name", EXAMPLES["DC-04"]["expected"])
def test_dc_04(name: str) -> None:
    given, expected = EXAMPLES["DC-04"]["input"], EXAMPLES["DC-04"]["expected"][name]
    z, n = (float(part.partition("=")[2]) for part in name.split(","))
    workers = int(n)
    p = zipf(z, given["K"])
    head = [x for x in p if x >= float(share(given["theta"], workers))]
    assert p[0] == pytest.approx(expected["p1"], abs=1e-6)
    assert len(head) == expected["H"]
    assert sum(head) == pytest.approx(expected["p_head"], abs=1e-6)
    shares = shares_of_weights(head, 1.0)
    assert find_d(shares, workers, given["eps"]) == expected["d"]
    counts = [round(x * 2**50) for x in head]
    assert find_d(shares_of_counts(counts, 2**50, "all"), workers, given["eps"]) == expected["d_all"]
    assert find_d(shares, workers, given["eps"], "round", "plain") == expected["d_code"]


def test_dc_05() -> None:
    given, expected = example("DC-05")
    p1, n = given["p1"], given["n"]
    assert repr(p1 * n) == expected["float_product"]
    assert ceil(p1 * n) == expected["naive_ceil"]
    assert find_d(Shares(p1, [], 1 - p1), n) == expected["with_1e9_tolerance"]


def test_dc_06() -> None:
    given, expected = example("DC-06")
    keys = [name.encode() for name, count in given["counts"].items() for _ in range(count)]
    rest = given["m_local"] - len(keys)
    for strict in (False, True):
        grouping = HeadGrouping(Setting(given["n"], 1), theta="1/(5n)", capacity=2000, strict=strict)
        for key in keys + [str(i).encode() for i in range(rest)]:
            grouping.detector.detect(0, key, 0)
        found = {name: "head" if grouping.detector.is_hot(0, name.encode()) else "tail" for name in given["counts"]}
        assert found == ({"a": "tail", "b": "tail"} if strict else expected)


def test_dc_07_no_better_than_the_bound() -> None:
    given, expected = example("DC-07")
    n, p = given["n"], zipf(given["z"], given["K"])
    assert p[0] == pytest.approx(expected["p1"], abs=1e-6)
    assert p[0] / 2 - 1 / n == pytest.approx(expected["bound"], abs=1e-6)
    grouping = Pkg(Setting(n, 1))
    keys = random.Random(0).choices(range(len(p)), p, k=5000)
    for key in keys:
        grouping.choose(0, str(key).encode(), 0)
    assert max(grouping.load[0]) / 5000 - 1 / n >= keys.count(0) / 5000 / 2 - 1 / n


class Named(SpaceSavingDetector):
    """h is hot."""

    def detect(self, source: int, key: bytes | None, now: int) -> int:
        return int(key == b"h")


def test_rr_01() -> None:
    given, expected = example("RR-01")
    setting = Setting(given["n"], 1, candidates=lambda key, j: given["tail_candidates"][j - 1])
    grouping = Rr(setting)
    grouping.detector = Named(setting)
    assert sent(grouping, given["stream"].replace(" ", "")) == expected["workers"]
    assert grouping.load == [expected["loads"]]


def test_rr_separate() -> None:
    """RR-01 whose tail, of candidates 0 and 1, does not see the head: in turn."""
    given, _ = example("RR-01")
    setting = Setting(given["n"], 1, candidates=lambda key, j: given["tail_candidates"][j - 1])
    grouping = make("rr:separate=true,theta=1", setting)
    assert isinstance(grouping, Rr)
    grouping.detector = Named(setting)
    assert sent(grouping, given["stream"].replace(" ", "")) == [0, 0, 1, 2, 1, 0]
    assert grouping.load == [[2, 1, 0]]


def test_gd_01_of_a_head_key() -> None:
    given, expected = example("GD-01")
    grouping = GreedyDHead(Setting(given["n"], 1, candidates=lambda key, j: given["F"][j - 1]))
    workers = []
    for d in given["d"]:
        grouping.d = d
        workers.append(grouping.choose(0, b"k", 0))
        assert grouping.allowed == d
    assert workers == expected["workers"]
    assert grouping.load == [expected["loads"]]


@pytest.mark.parametrize("name", ["d_choices", "w_choices", "rr", "greedy_freq", "greedy_d"])
def test_pkg_01_is_the_tail(name: str) -> None:
    given, expected = example("PKG-01")
    table = given["candidates"]
    setting = Setting(given["n"], 1, candidates=lambda key, j: table[key.decode()][j - 1])
    scope = ",scope=head,d=5" if name == "greedy_d" else ""
    grouping = make(f"{name}:min_count=100{scope}", setting)
    assert sent(grouping, given["stream"]) == expected["workers"]
    assert isinstance(grouping, HeadGrouping)
    assert grouping.load == [expected["loads"]]
    assert grouping.allowed == 0


def test_d_is_found_at_multiples() -> None:
    """The key alone is all of the tuples: d = n, from the first head tuple at or after each multiple on."""
    grouping = DChoices(Setting(8, 1), recompute_every=3)
    allowed = []
    for key in "aaaaabbbbbbbbbbbbb":
        grouping.choose(0, key.encode(), 0)
        allowed.append(grouping.allowed)
    assert allowed == [2, 2] + [8] * 6 + expected_d(grouping, 8)
    assert grouping.choices(b"a") == 8


def expected_d(grouping: DChoices, n: int) -> list[int]:
    """For 5 of one key and then h of another, d at the multiple of 3 that is the last one before."""
    found = []
    for m in range(9, 19):
        at = m // 3 * 3
        head = sorted([5, at - 5], reverse=True)
        found.append(find_d(shares_of_counts(head, at), n))
    return found


def test_after_a_gap_the_next_multiple_counts() -> None:
    grouping = DChoices(Setting(4, 1, candidates=lambda key, j: (j - 1) % 4), theta="0.5", recompute_every=2)
    seen = []
    for key in "abcdefgaaaaaaaaaa":
        grouping.choose(0, key.encode(), 0)
        seen.append((grouping.allowed, grouping.found_at[0]))
    # the first tuple is head, and with it every second one at most, until the a's are half of all
    heads = [number for number, (allowed, _) in enumerate(seen, start=1) if allowed]
    assert heads == [1, 2, 12, 13, 14, 15, 16, 17]
    assert [seen[number - 1][1] for number in heads] == [0, 2, 12, 12, 14, 14, 16, 16]


def test_d_is_found_often_at_first_and_seldom_later() -> None:
    """At every tuple until 64, then when they are 65/64 of what they were, at last every 1000."""
    grouping = DChoices(Setting(4, 1), theta="0.5", capacity=1)
    times = [0]
    for _ in range(70_000):
        grouping.choose(0, b"a", 0)
        if grouping.found_at[0] != times[-1]:
            times.append(grouping.found_at[0] or 0)
    assert times[:65] == list(range(65))
    assert times[65:70] == [65, 67, 69, 71, 73]
    assert all(
        after == before + min(-(-before // 64), 1000) for before, after in itertools.pairwise(times) if before > 0
    )
    assert times[-1] - times[-2] == 1000


def test_d_is_found_for_the_first_head_tuple_after_a_long_time_without() -> None:
    grouping = DChoices(Setting(4, 1), theta="0.5")
    # 200 different ones, each of a quarter of the table; then one that starts with their 50 in it
    sent(grouping, [chr(256 + i) for i in range(200)])
    assert grouping.found_at == [2]
    sent(grouping, "a" * 99)
    assert (grouping.found_at, grouping.allowed) == ([2], 0)
    sent(grouping, "a")
    assert (grouping.found_at, grouping.allowed) == ([300], 4)


def test_w_choices_by_hand_with_changes() -> None:
    grouping = WChoices(Setting(2, 1), theta="1")
    assert sent(grouping, "aaa") == [0, 1, 0]
    grouping.workers_changed(WorkersChange(0, [0, 1, 2], [2], []))
    # the joiner starts at 1, the least
    assert sent(grouping, "aaaa") == [1, 2, 0, 1]
    assert grouping.load == [[3, 3, 2]]
    grouping.workers_changed(WorkersChange(0, [0, 1], [], [2]))
    assert sent(grouping, "a") == [0]
    assert grouping.allowed == 2
    grouping.workers_changed(WorkersChange(0, [0, 1, 3], [3], []))
    assert grouping.load == [[4, 3, 2, 3]]
    assert sent(grouping, "aa") == [1, 3]
    assert grouping.state_entries(0) == 1 + 3
    assert grouping.detector_entries() == 1


def test_rr_pointers_with_changes() -> None:
    grouping = Rr(Setting(3, 2), theta="1")
    assert grouping.choose(1, b"a", 0) == 1
    assert sent(grouping, "aa") == [0, 1]
    grouping.workers_changed(WorkersChange(0, [0, 2], [], [1]))
    # both pointed at place 2, which is place 0 now
    assert sent(grouping, "aa") == [0, 2]
    assert grouping.choose(1, b"a", 0) == 0
    grouping.workers_changed(WorkersChange(0, [0, 2, 3], [3], []))
    assert grouping.choose(1, b"a", 0) == 2
    assert grouping.choose(1, b"a", 0) == 3


@pytest.mark.parametrize("every", [0, 1000])
def test_d_follows_the_number_of_workers_at_once(every: int) -> None:
    grouping = DChoices(Setting(5, 1, candidates=lambda key, j: (0, 1, 3)[(j - 1) % 3]), recompute_every=every)
    sent(grouping, "a" * 1000)
    assert grouping.allowed == 5
    grouping.workers_changed(WorkersChange(0, [0, 1, 3], [], [2, 4]))
    sent(grouping, "a")
    assert grouping.allowed == 3
    grouping.workers_changed(WorkersChange(0, [0, 1, 3, 5], [5], []))
    sent(grouping, "a")
    assert grouping.allowed == 4


@pytest.mark.parametrize("more", ["", ",estimate=count-error", ",replacement=false,capacity=5", ",min_count=20"])
def test_with_two_workers_d_choices_is_w_choices(more: str) -> None:
    tuples = [(i, key, None) for i, key in enumerate(stream(600))]
    runs = [
        simulate(tuples, make(f"{name}:theta=1/3n{more}", Setting(2, 2)), workers=2, sources=2)
        for name in ("d_choices", "w_choices", "greedy_freq")
    ]
    assert runs[0].choices == runs[1].choices == runs[2].choices
    assert {c.allowed for c in runs[0].choices} == {0, 2}


def test_greedy_freq_by_hand() -> None:
    setting = Setting(10, 1, candidates=lambda key, j: j % 10)
    grouping = make("greedy_freq:theta=1/n", setting)
    allowed = []
    for key in "abcdabaaeeee":
        grouping.choose(0, key.encode(), 0)
        allowed.append(grouping.allowed)
    # ceil(10 count / m), at least 2, 10 at most; e is 1, 2, 3, 4 of 9, 10, 11, 12
    assert allowed == [10, 5, 4, 3, 4, 4, 5, 5, 2, 2, 3, 4]


def test_one_worker() -> None:
    for text in ("d_choices", "w_choices", "rr", "greedy_freq", "greedy_d:scope=head,d=4", "kg:ring=true"):
        grouping = make(text, Setting(1, 2))
        assert [grouping.choose(i % 2, key, 0) for i, key in enumerate(stream(50))] == [0] * 50


def test_flags() -> None:
    assert [truth(value) for value in ("true", "false", True, False)] == [True, False, True, False]
