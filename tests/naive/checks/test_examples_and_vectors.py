"""The naive twin against worked examples and published vectors: it is only worth something if it is right."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.naive.groupings.simple_groupings import GreedyD, Kg, Pkg, Setting, Sg, SgRandom
from tests.naive.kernels.hashes_and_draws import below, candidate, exponential, hash_key, log, mix64, source_of, uniform
from tests.naive.metrics.metrics import (
    imbalance,
    metrics,
    nearest_rank,
    peak_to_mean,
    skew_score,
    summary,
    window_numbers,
)
from tests.naive.replay.simulate import Run, simulate, slowdowns

DATA = Path(__file__).parents[2] / "data"
VECTORS = json.loads((DATA / "hash_vectors.json").read_text())["keys"]
SECOND = 1_000_000_000
MILLISECOND = 1_000_000


def example(name: str) -> tuple[Any, Any]:
    found = [e for e in json.loads((DATA / "examples.json").read_text()) if e["id"] == name]
    assert len(found) == 1
    return found[0]["input"], found[0]["expected"]


def at(times_s: list[float], keys: list[bytes | None] | None = None) -> list[tuple[int, bytes | None, None]]:
    keys = keys or [b"k"] * len(times_s)
    return [(round(t * 1_000_000), key, None) for t, key in zip(times_s, keys, strict=True)]


def arrivals(run: Run) -> list[int]:
    return [r.arrival_ns for r in run.records]


@pytest.mark.parametrize("vector", VECTORS, ids=[v["key"] for v in VECTORS])
def test_hash_vectors(vector: dict[str, Any]) -> None:
    key = vector["key"].encode()
    assert hash_key(key) == (vector["hash_lo"] % 2**64, vector["hash_hi"] % 2**64)
    for n, expected in vector["candidates"].items():
        assert [candidate(key, j, int(n)) for j in range(1, 5)] == expected
    seeded = vector["candidates_64_hash_seed_1"]
    assert [candidate(key, j, 64, hash_seed=1) for j in (1, 2)] == seeded
    assert source_of(key, 5) == vector["source_of_5"]


def test_null_key_is_not_the_empty_key() -> None:
    assert hash_key(None) != hash_key(b"") == (0, 0)


def test_splitmix64_sequence() -> None:
    """The published generator, started at 0, gives mix64 of the multiples of its increment."""
    golden = 0x9E3779B97F4A7C15
    assert [mix64(golden * i) for i in (1, 2, 3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


def test_draws_depend_on_seed_purpose_and_index_and_are_uniform() -> None:
    drawn = {uniform(s, p, i) for s in (0, 1) for p in ("a", "b") for i in range(500)}
    assert len(drawn) == 2000
    assert 0 <= min(drawn) < 0.01
    assert 0.99 < max(drawn) < 1
    assert abs(sum(drawn) / 2000 - 0.5) < 0.03
    counts = [[below(0, "x", i, 7) for i in range(7000)].count(w) for w in range(7)]
    assert max(counts) < 1150
    assert min(counts) > 850


def test_log_is_the_logarithm() -> None:
    for x in (1.0, 0.5, 2.0**-53, 1 - 2.0**-53, 0.7071, 0.7072, 0.3, 1e-9):
        assert log(x) == pytest.approx(math.log(x), rel=4e-15, abs=1e-30)
    mean = sum(exponential(0, "arrivals", i) for i in range(20000)) / 20000
    assert mean == pytest.approx(1, abs=0.03)


def test_posg_01_round_robin_fifo() -> None:
    given, expected = example("POSG-01")
    tuples = [(t * 1_000_000, b"x", cost * 1e6) for t, cost in zip(given["arrivals_s"], given["exec_s"], strict=True)]
    run = simulate(tuples, Sg(Setting(given["k"], sources=1)), workers=given["k"], sources=1)
    latencies = [r.finish_ns - r.arrival_ns for r in run.records]
    assert [r.worker for r in run.records] == expected["assignment"]
    assert latencies == [s * SECOND for s in expected["completion_s"]]
    assert sum(latencies) == expected["cumulated_s"] * SECOND
    waited = sum(r.start_ns - r.arrival_ns for r in run.records)
    assert waited == expected["wasted_s"] * SECOND


def test_imb_01() -> None:
    given, expected = example("IMB-01")
    assert float(imbalance(given["loads"])) == pytest.approx(expected["imbalance"], abs=1e-6)
    assert float(peak_to_mean(given["loads"])) == pytest.approx(expected["max_over_avg"])


def test_pkg_01() -> None:
    given, expected = example("PKG-01")
    table = given["candidates"]
    setting = Setting(given["n"], sources=1, candidates=lambda key, j: table[key.decode()][j - 1])
    tuples = at([0.0] * len(given["stream"]), [k.encode() for k in given["stream"]])
    run = simulate(tuples, Pkg(setting), workers=given["n"], sources=1)
    assert [r.worker for r in run.records] == expected["workers"]
    tables = metrics(run)
    assert [w["tuples"] for w in tables["workers"]] == expected["loads"]
    assert {k["key"].decode(): k["workers"] for k in tables["keys"]} == expected["replicas"]
    assert tables["summary"]["replicas"] == sum(expected["replicas"].values())


def test_gd_01() -> None:
    given, expected = example("GD-01")
    setting = Setting(given["n"], sources=1, candidates=lambda key, j: given["F"][j - 1])
    grouping = GreedyD(setting, d=2)
    workers = []
    for d in given["d"]:
        grouping.d = d
        workers.append(grouping.choose(0, b"k", 0))
    assert workers == expected["workers"]
    assert grouping.load == [expected["loads"]]


def test_sg_01_sources_start_at_their_own_number() -> None:
    given, expected = example("SG-01")
    sources, n = given["s"], given["n"]
    tuples = at([0.0] * sources * given["per_source"])
    run = simulate(tuples, Sg(Setting(n, sources)), workers=n, sources=sources)
    assert [w["tuples"] for w in metrics(run)["workers"]] == expected["staggered"]


@pytest.mark.parametrize(
    ("loads", "score"),
    [([1, 1, 1, 5, 10], 86.67), ([1, 1, 5, 5, 5], 56.47), ([4, 5, 5, 5, 5], 6.67), ([0, 0, 0], 0)],
)
def test_flink_skew_score(loads: list[int], score: float) -> None:
    assert skew_score(loads) == pytest.approx(score, abs=0.005)


def test_flink_skew_score_is_capped() -> None:
    assert skew_score([0] * 9 + [10]) == 100


def test_three_windows_the_last_one_partial() -> None:
    tuples = at([0, 1, 10, 11, 12, 20], [b"a", b"b", b"a", b"c", b"a", b"d"])
    run = simulate(tuples, Pkg(Setting(2)), workers=2)
    for window in (("time", 10 * SECOND), ("count", 3), ("share", Fraction(2, 5))):
        tables = metrics(run, window=window)
        assert sum(w["tuples"] for w in tables["windows"]) == 6
        assert sum(row["tuples"] for row in tables["loads"]) == 6
        assert tables["windows"][-1]["imbalance"] == tables["summary"]["imbalance"]
    assert [w["tuples"] for w in metrics(run, window=("time", 10 * SECOND))["windows"]] == [2, 3, 1]
    assert [w["finished"] for w in metrics(run, window=("time", 10 * SECOND))["windows"]] == [2, 3, 1]


def test_windows_by_share_are_exact_and_empty_ones_have_no_row() -> None:
    run = simulate(at([float(i) for i in range(7)]), Kg(Setting(2)), workers=2)
    assert window_numbers(run.records, ("share", Fraction(1, 100))) == [0, 14, 28, 42, 57, 71, 85]
    assert [w["window"] for w in metrics(run)["windows"]] == [0, 14, 28, 42, 57, 71, 85]
    gap = simulate(at([0, 1, 365 * 86400]), Kg(Setting(2)), workers=2)
    assert [w["window"] for w in metrics(gap, window=("time", SECOND))["windows"]] == [0, 1, 365 * 86400]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("make", [Sg, SgRandom, Kg, Pkg, lambda s: GreedyD(s, 5)])
def test_workers_are_in_range(n: int, make: Any) -> None:
    keys = [b"polygenelubricants", b"PUFPaY9KxDAcGqfsorJp1R", b"", None]
    run = simulate(at([0.0] * 40, keys * 10), make(Setting(n, 3)), workers=n, sources=3)
    assert {r.worker for r in run.records} <= set(range(n))
    assert len(run.records) == 40


def test_candidates_that_coincide() -> None:
    """Two choices may be one (no guard): with two workers about half of the keys have a single candidate."""
    keys: list[bytes | None] = [f"k{i}".encode() for i in range(200)]
    assert 60 < sum(candidate(key, 1, 2) == candidate(key, 2, 2) for key in keys) < 140
    run = simulate(at([0.0] * 2000, keys * 10), Pkg(Setting(2, 1)), workers=2, sources=1)
    used = {key: {r.worker for r in run.records if r.key == key} for key in keys}
    for key, workers in used.items():
        assert workers <= {candidate(key, 1, 2), candidate(key, 2, 2)}


def test_pkg_with_one_choice_is_kg_and_greedy_with_two_is_pkg() -> None:
    tuples = at([0.0] * 300, [f"k{i * i % 17}".encode() for i in range(300)])

    def chosen(grouping: Any) -> list[int]:
        return [r.worker for r in simulate(tuples, grouping, workers=6).records]

    assert chosen(Pkg(Setting(6), d=1)) == chosen(Kg(Setting(6)))
    assert chosen(GreedyD(Setting(6), d=2)) == chosen(Pkg(Setting(6)))
    assert chosen(GreedyD(Setting(6), d=3)) != chosen(Pkg(Setting(6)))


def test_latency_counts_from_the_arrival() -> None:
    run = simulate(at([0, 0, 0]), Kg(Setting(1)), workers=1, service_ns=SECOND)
    assert [(r.finish_ns - r.arrival_ns) // SECOND for r in run.records] == [1, 2, 3]
    found = summary(run)
    assert found["queue_max"] == 2
    assert found["backlog_max_ms"] == 2000
    assert found["makespan_s"] == 3
    assert found["makespan_vs_lower_bound"] == 1
    assert found["offered_load"] is None


def test_percentiles_are_pooled() -> None:
    class ByKey(Kg):
        def choose(self, source: int, key: bytes | None, now: int) -> int:
            return 0 if key == b"fast" else 1

    fast = [(i * 10_000, b"fast", 1000.0) for i in range(99)]
    run = simulate([*fast, (2_000_000, b"slow", 100_000.0)], ByKey(Setting(2)), workers=2)
    found = summary(run)
    assert found["latency_p50_ms"] == 1
    assert found["latency_p99_ms"] == 1
    assert found["latency_p999_ms"] == 100
    assert found["latency_max_ms"] == 100
    assert found["latency_worst_worker_mean_ms"] == 100
    assert found["queue_max"] is None
    assert found["throughput_limit_tps"] == pytest.approx(1000)


def test_nearest_rank() -> None:
    assert nearest_rank([3, 1, 2], Fraction(1, 2)) == 2
    assert nearest_rank(range(1, 101), Fraction(99, 100)) == 99
    assert nearest_rank([7], Fraction(1, 1000)) == 7


def test_slowdown_repeats_and_half() -> None:
    assert slowdowns("1,2", 5) == [1, 2, 1, 2, 1]
    assert slowdowns("half:2", 5) == [1, 1, 1, 2, 2]
    assert slowdowns("1.1", 1) == [Fraction(11, 10)]


def test_service_and_capacity_follow_the_slowdown() -> None:
    run = simulate(at([0, 1, 2, 3]), Sg(Setting(2, 1)), workers=2, sources=1, slowdown="1,4", network_delay_ns=7)
    assert [r.finish_ns - r.start_ns for r in run.records] == [MILLISECOND, 4 * MILLISECOND] * 2
    assert [r.start_ns - r.arrival_ns for r in run.records] == [7] * 4
    assert run.offered_load == pytest.approx(1 / 1250)
    assert summary(run)["work_peak_to_mean"] == pytest.approx(1.6)


def test_trace_costs_are_stored_as_float32_and_rounded_once() -> None:
    run = simulate([(0, b"k", 0.1), (0, b"k", 16777217.0)], Kg(Setting(1)), workers=1)
    assert [r.cost_ns for r in run.records] == [100, 16777216000]
    halves = simulate([(0, b"k", 0.0625), (0, b"k", 0.1875)], Kg(Setting(1)), workers=1, slowdown="0.5")
    assert [r.cost_ns for r in halves.records] == [62, 188]
    assert [r.finish_ns - r.start_ns for r in halves.records] == [31, 94]


def test_arrivals_of_the_trace_and_ties() -> None:
    times = [0, 0, 0, 1, 1, 3, 3]
    plain = simulate(at(times), Kg(Setting(2)), workers=2, speedup="2")
    assert arrivals(plain) == [0, 0, 0, SECOND // 2, SECOND // 2, 3 * SECOND // 2, 3 * SECOND // 2]
    spread = simulate(at(times), Kg(Setting(2)), workers=2, spread_ties=True)
    third = SECOND // 3
    assert arrivals(spread) == [0, third, 2 * third + 1, SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND]
    instant = simulate(at([5, 5]), Kg(Setting(2)), workers=2, spread_ties=True)
    assert arrivals(instant) == [0, 0]


def test_arrivals_at_a_rate_never_drift() -> None:
    run = simulate(at([0.0] * 31), Kg(Setting(2)), workers=2, arrivals=("rate", "3"))
    assert arrivals(run)[:4] == [0, 333_333_333, 666_666_666, SECOND]
    assert arrivals(run)[30] == 10 * SECOND
    assert run.offered_load == pytest.approx(3 / 2000)


def test_arrivals_by_utilization() -> None:
    tuples = [(0, b"k", 1000.0), (0, b"k", 2000.0)] * 50
    for kind in ("utilization", "poisson-utilization"):
        run = simulate(tuples, Kg(Setting(3)), workers=3, slowdown="1,1,2", arrivals=(kind, "0.8"))
        assert run.offered_load == 0.8
        gap = arrivals(run)[-1] / 99
        assert gap == pytest.approx(1_500_000 / (0.8 * 2.5), rel=0.4 if kind.startswith("poisson") else 1e-6)


def test_poisson_has_its_mean() -> None:
    run = simulate(at([0.0] * 3000), Kg(Setting(2)), workers=2, arrivals=("poisson", "1000"), seed=3)
    other = simulate(at([0.0] * 3000), Sg(Setting(2)), workers=2, arrivals=("poisson", "1000"), seed=3)
    assert arrivals(run)[-1] / 2999 == pytest.approx(MILLISECOND, rel=0.1)
    assert arrivals(run) == arrivals(other)


def test_source_assignment() -> None:
    tuples = at([0.0] * 200, [f"k{i}".encode() for i in range(200)])

    def sources(kind: str) -> list[int]:
        run = simulate(tuples, Kg(Setting(2, 4)), workers=2, sources=4, source_assignment=kind)
        return [r.source for r in run.records]

    assert sources("shuffle")[:6] == [0, 1, 2, 3, 0, 1]
    assert sources("key") == [source_of(key, 4) for _, key, _ in tuples]
    assert set(sources("random")) == {0, 1, 2, 3}


def test_executor_tells_in_order_with_ticks_before() -> None:
    class Spy(Sg):
        def __init__(self, setting: Setting) -> None:
            super().__init__(setting)
            self.log: list[Any] = []

        def choose(self, source: int, key: bytes | None, now: int) -> int:
            self.log.append(("choose", now))
            return super().choose(source, key, now)

        def tick(self, now: int) -> None:
            self.log.append(("tick", now))

        def executed(self, worker: int, key: bytes | None, arrival: int, start: int, finish: int) -> None:
            self.log.append(("executed", worker, key, arrival, start, finish))

    tuples = [(0, b"a", 0.005), (0, b"b", 0.005), (0, b"c", 0.001), (1, b"d", 0.002)]
    spy = Spy(Setting(2, 1))
    simulate(tuples, spy, workers=2, sources=1, network_delay_ns=10)
    assert spy.log == [
        *[("tick", 0), ("choose", 0)] * 3,
        ("tick", 14),
        ("executed", 0, b"a", 10, 10, 15),
        ("tick", 14),
        ("executed", 1, b"b", 10, 10, 15),
        ("tick", 15),
        ("executed", 0, b"c", 10, 15, 16),
        ("tick", 1000),
        ("choose", 1000),
        ("tick", 1011),
        ("executed", 1, b"d", 1010, 1010, 1012),
    ]


def test_state_and_aggregation() -> None:
    keys: list[bytes | None] = [b"a", b"a", b"a", b"b", b"a", b"b"]
    run = simulate(at([0, 1, 2, 3, 4, 5], keys), Sg(Setting(3, 1)), workers=3, sources=1)
    found = summary(run)
    # a: workers 0, 1, 2, 1; b: workers 0, 2
    assert found["replicas"] == found["aggregation_messages"] == 5
    assert found["replication_factor"] == 2.5
    assert found["state_entries_max"] == 2
    assert (found["memory_estimate_pkg"], found["memory_estimate_sg"], found["memory_estimate"]) == (4, 5, 5)
    assert summary(run, aggregate_every=("count", 3))["aggregation_messages"] == 6
    assert summary(run, aggregate_every=("count", 6))["aggregation_messages"] == 5


def test_warm_up_is_served_and_in_no_metric() -> None:
    run = simulate(at([0, 0, 0, 0]), Kg(Setting(1)), workers=1)
    found = summary(run, warmup=("count", 3))
    assert found["latency_mean_ms"] == found["makespan_s"] * 1000 == 4
    assert found["queue_max"] == 3
    assert summary(run, warmup=("share", Fraction(3, 4))) == found
    for all_of_it in (("count", 4), ("count", 5), ("time", 1), ("share", 1)):
        with pytest.raises(ValueError, match="warm-up"):
            summary(run, warmup=all_of_it)


def test_one_tuple() -> None:
    run = simulate(at([7]), Kg(Setting(3)), workers=3)
    tables = metrics(run)
    found = tables["summary"]
    assert found["idle_workers"] == 2
    assert found["imbalance"] == found["imbalance_mean"] == pytest.approx(2 / 3)
    assert found["utilization_max"] == 1
    assert found["offered_load"] is None
    assert len(tables["windows"]) == 1
    assert len(tables["loads"]) == 3


def test_free_service_makes_no_nan() -> None:
    found = summary(simulate(at([0, 0]), Kg(Setting(2)), workers=2, service_ns=0))
    for name in ("throughput_tps", "throughput_limit_tps", "utilization_mean", "work_imbalance"):
        assert found[name] is None
    assert found["makespan_vs_lower_bound"] is None


def test_an_empty_trace_and_the_end_of_the_clock_are_errors() -> None:
    with pytest.raises(ValueError, match="empty"):
        simulate([], Kg(Setting(1)), workers=1)
    with pytest.raises(OverflowError):
        simulate([(0, b"k", None), (2**53, b"k", None)], Kg(Setting(1)), workers=1)
    with pytest.raises(OverflowError):
        simulate(at([0]), Kg(Setting(1)), workers=1, service_ns=2**53 + 2)
