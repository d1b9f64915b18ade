"""The replay against its naive twin, tuple by tuple."""

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.naive.groupings import simple_groupings as naive
from tests.naive.replay.simulate import Run, simulate
from tests.random_cases import random_cases
from tests.traces_by_hand import write_trace

ARRIVALS = [
    "trace",
    "rate=1000",
    "rate=0.7",
    "rate=333333.3",
    "poisson=900",
    "utilization=0.8",
    "poisson-utilization=1.3",
]


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a small stream and the options of a replay."""
    count = draw(st.integers(1, 40))
    keys = draw(st.lists(st.binary(max_size=3).filter(_is_text) | st.none(), min_size=1, max_size=6, unique=True))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 7, 900, 1000, 5_000, 10**6]), min_size=count, max_size=count))
    costs = draw(st.sampled_from([None, [0.0, 1.0], [1.5, 1000.25, 3.125e5], [2500.0005]]))
    start = draw(st.sampled_from([0, -1_500, 1_600_000_000_000_000]))
    tuples = []
    for gap in gaps:
        start += gap
        cost = None if costs is None else draw(st.sampled_from(costs))
        tuples.append((start, draw(st.sampled_from(keys)), cost))
    arrivals = draw(st.sampled_from(ARRIVALS))
    by_trace = arrivals == "trace"
    return {
        "tuples": tuples,
        "grouping": draw(st.sampled_from(["sg", "sg_random", "kg", "pkg", "pkg:d=3", "greedy_d:d=1", "greedy_d:d=5"])),
        "workers": draw(st.integers(1, 7)),
        "sources": draw(st.integers(1, 6)),
        "source_assignment": draw(st.sampled_from(["shuffle", "random", "key"])),
        "arrivals": arrivals,
        "spread_ties": by_trace and draw(st.booleans()),
        "speedup": draw(st.sampled_from(["1", "0.5", "3", "1e3"])) if by_trace else "1",
        "service": draw(st.sampled_from([None, "1ms", "17us", "1ns", "0.3s"])),
        "slowdown": draw(st.sampled_from(["1", "1,2", "half:2", "0.5,1,1.1", "half:0.333"])),
        "network_delay": draw(st.sampled_from(["0", "1ms", "12345ns"])),
        "seed": draw(st.integers(0, 3)),
        "hash_seed": draw(st.integers(0, 3)),
        "parts": draw(st.integers(1, 3)),
    }


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def _close(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(abs(float(one) - float(other)) <= 1e-12 * abs(float(other)))


def naive_grouping(text: str, setting: naive.Setting) -> naive.Grouping:
    name, _, d = text.partition(":d=")
    kinds = {"sg": naive.Sg, "sg_random": naive.SgRandom, "kg": naive.Kg, "pkg": naive.Pkg, "greedy_d": naive.GreedyD}
    return kinds[name](setting, int(d)) if d else kinds[name](setting)


def naive_run(case: dict[str, Any]) -> Run:
    """Replay a scenario with the naive twin."""
    services = {None: None, "1ms": 1_000_000, "17us": 17_000, "1ns": 1, "0.3s": 300_000_000}
    delays = {"0": 0, "1ms": 1_000_000, "12345ns": 12_345}
    kind, _, value = case["arrivals"].partition("=")
    setting = naive.Setting(case["workers"], case["sources"], case["seed"], case["hash_seed"])
    return simulate(
        case["tuples"],
        naive_grouping(case["grouping"], setting),
        workers=case["workers"],
        sources=case["sources"],
        source_assignment=case["source_assignment"],
        arrivals=(kind, Fraction(value)) if value else (kind,),
        spread_ties=case["spread_ties"],
        speedup=Fraction(case["speedup"]),
        service_ns=services[case["service"]],
        slowdown=case["slowdown"],
        network_delay_ns=delays[case["network_delay"]],
        seed=case["seed"],
    )


def options_of(case: dict[str, Any]) -> ReplayOptions:
    return ReplayOptions(**{name: value for name, value in case.items() if name not in ("tuples", "parts")})


def logged(case: dict[str, Any], *, interpreted: bool) -> tuple[list[tuple[Any, ...]], Any]:
    """Replay a scenario and give the rows of its log as tuples, and the outcome."""
    with tempfile.TemporaryDirectory() as folder:
        trace = open_trace(write_trace(Path(folder) / "t", case["tuples"], case["parts"]))
        outcome = replay(trace, options_of(case), log_directory=Path(folder) / "log", interpreted=interpreted)
        table = pq.read_table(Path(folder) / "log")
        texts = trace.key_bytes(list(range(trace.keys)))
        rows = [
            (r["seq"], r["arrival_ns"], r["source"], texts[r["key_id"]], r["worker"], r["start_ns"], r["finish_ns"])
            for r in table.to_pylist()
        ]
    return rows, outcome


@random_cases(400)
@given(scenarios())
def test_every_tuple_is_as_in_the_naive_twin(case: dict[str, Any]) -> None:
    try:
        run = naive_run(case)
    except (ValueError, ZeroDivisionError):
        return
    rows, outcome = logged(case, interpreted=True)
    assert rows == [tuple(record)[:7] for record in run.records]
    assert _close(outcome.offered_load, run.offered_load)
