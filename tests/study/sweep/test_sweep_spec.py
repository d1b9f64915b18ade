"""What a sweep is asked to run, from a file and from flags."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import UsageError
from streamgroup.study.sweep.cells_of_spec import cells_of, groupings_without_draws
from streamgroup.study.sweep.schedule import open_traces
from streamgroup.study.sweep.sweep_spec import make_spec, read_file
from tests.study.small_hand_written_traces import write_trace

WHOLE = """
traces = ["x.trace"]
groupings = ["kg", "pkg:d=2,3", { name = "fish", alpha = [0.1, 0.2], epoch = 1000 }, "./mine.py:x=1"]
workers = [4, "8..16..4"]
sources = 2
arrivals = ["trace", "utilization=0.8"]
seeds = 2
speedup = 2
window = "10%"
spread-ties = true
leave = ["50%"]
baseline = true
"""


@pytest.fixture
def trace(tmp_path: Path) -> str:
    return str(write_trace(tmp_path / "x.trace", list(range(20)), [f"k{i % 3}" for i in range(20)]))


def read(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return read_file(path)


def test_a_whole_file(trace: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from streamgroup.groupings.greedy_d import *\n")
    found = read(tmp_path, WHOLE.replace("mine.py:x=1", "mine.py:d=3"))
    assert found["traces"] == (trace,)
    assert found["groupings"] == ("kg", "pkg:d=2,3", "fish:alpha=0.1,0.2,epoch=1000", f"{tmp_path}/mine.py:d=3")
    spec = make_spec(found)
    assert (spec.workers, spec.sources, spec.seeds, spec.baseline) == ((4, 8, 12, 16), (2,), (0, 1), True)
    assert spec.options == {"speedup": "2", "window": "10%", "spread_ties": True, "leave": ("50%",)}
    cells, again = cells_of(spec, open_traces(spec.traces))
    assert (len(cells), again) == (2 * (4 * 2 + 2) * 4, 0)
    assert groupings_without_draws(spec, cells) == ["fish:alpha=0.1", "fish"]
    assert {(cell.options.leave, cell.options.window, cell.baseline) for cell in cells} == {(("50%",), "10%", True)}


def test_files_of_code_are_beside_the_file(tmp_path: Path) -> None:
    found = read(tmp_path, "app = './mine.py:x=1'\naggregator_grouping = 'salted:keys=hot'")
    assert (found["app"], found["aggregator_grouping"]) == (f"{tmp_path}/mine.py:x=1", f"salted:keys={tmp_path}/hot")


def test_files_of_parameters_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "up").mkdir()
    path = tmp_path / "up" / ".." / "spec.toml"
    path.write_text("groupings = ['a=salted:keys=hot,/b/hot,salts=2,3', { name = 'salted', keys = 'hot' }, 'salted']")
    beside = tmp_path / "up" / ".."
    found = read_file(path)["groupings"]
    assert found == (f"a=salted:keys={beside}/hot,/b/hot,salts=2,3", f"salted:keys={beside}/hot", "salted")
    spec = make_spec({"traces": ["x"], "workers": ["2"], "groupings": found})
    assert len(spec.groupings) == 6


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("wokers = [1]", "unknown key 'wokers'"),
        ('"a[b" = [1]', r"unknown key 'a\[b'"),
        ("[options]\nwindow = '1%'", "unknown key 'options'"),
        ("workers = [true]", "workers"),
        ("spread_ties = 'perhaps'", "spread_ties"),
        ("queue_capacity = 'x'", "queue_capacity"),
        ("window = [1, 2]", "window"),
        ("groupings = [{ alpha = 1 }]", r"groupings.0"),
        ("groupings = [true]", "groupings"),
        ("seeds = 'x'", "seeds"),
        ("key-cost = 'a.csv'\nkey_cost = 'b.csv'", "key-cost is there as key_cost, too"),
        ("workers = ", "not TOML"),
        ("workers = [4]\nsources = []", "sources: the list is empty"),
    ],
)
def test_what_a_file_may_not_say(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as error:
        read(tmp_path, text)
    assert "spec.toml" in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_file(tmp_path / "none.toml")
    (tmp_path / "spec.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not TOML"):
        read_file(tmp_path / "spec.toml")


GOOD: dict[str, Any] = {"traces": ["x"], "groupings": ["kg"], "workers": ["4"]}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"traces": []}, "a trace"),
        ({"groupings": []}, "-g"),
        ({"workers": []}, "-n"),
        ({"workers": ["0"]}, "-n"),
        ({"workers": ["65537"]}, "-n"),
        ({"sources": ["x"]}, "--sources"),
        ({"arrivals": ["trace,5"]}, "--arrivals"),
        ({"groupings": ["nosuch"]}, "nosuch"),
        ({"groupings": ["fish:alpha=0.1,9"]}, "alpha"),
        ({"seed": ["1"], "seeds": 2}, "exclude"),
        ({"seeds": 0}, "--seeds"),
        ({"seed": ["-1"]}, "--seed"),
        ({"max_pending": 5}, "--max-pending is for --arrivals saturate"),
        ({"max_pending": 5, "arrivals": ["trace", "max"]}, "--max-pending is for --arrivals saturate"),
    ],
)
def test_what_is_wrong_in_itself(given: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        make_spec({**GOOD, **given})


def test_a_baseline_is_for_cells_whose_workers_change(trace: str, tmp_path: Path) -> None:
    (tmp_path / "leaves.toml").write_text('leave = "50%"')
    (tmp_path / "stays.toml").write_text('service = "1ms"')
    files = [str(tmp_path / name) for name in ("leaves.toml", "stays.toml")]
    cells, _ = cells_of(
        make_spec({**GOOD, "traces": [trace], "capacity": files, "baseline": True}), open_traces([trace])
    )
    assert [cell.baseline for cell in cells] == [True, False]
    with pytest.raises(UsageError, match="--baseline"):
        cells_of(make_spec({**GOOD, "traces": [trace], "baseline": True}), open_traces([trace]))


def test_pending_tuples_are_limited_in_closed_loops_alone(trace: str) -> None:
    given = {**GOOD, "traces": [trace], "arrivals": ["saturate", "utilization=0.8"], "max_pending": 5}
    cells, _ = cells_of(make_spec(given), open_traces([trace]))
    found = {cell.options.arrivals: cell.options.max_pending for cell in cells}
    assert found == {"saturate": 5, "utilization=0.8": 1000}


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=30
)
@given(
    st.lists(st.sampled_from(["kg", "sg", "pkg", "greedy_d:d=3"]), min_size=1, max_size=4),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.integers(1, 3),
)
def test_cells_are_all_combinations_each_once(
    trace: str, groupings: list[str], workers: list[int], sources: list[int], seeds: int
) -> None:
    given = {
        "traces": [trace],
        "groupings": groupings,
        "workers": [str(n) for n in workers],
        "sources": [str(n) for n in sources],
        "seeds": seeds,
    }
    spec = make_spec(given)
    cells, again = cells_of(spec, open_traces([trace]))
    lists = (workers, sources)
    # Round robin is the same under every seed.
    drawn = {name: 1 if name == "sg" else seeds for name in groupings}
    assert len(cells) == sum(drawn.values()) * math.prod(len(set(values)) for values in lists)
    assert len(cells) + again == sum(drawn[name] for name in groupings) * math.prod(map(len, lists))
    assert len({cell.id for cell in cells}) == len(cells)
    assert groupings_without_draws(spec, cells) == (["sg"] if "sg" in groupings and seeds > 1 else [])
    assert cells == cells_of(make_spec(given), open_traces([trace]))[0]


def test_what_nothing_is_drawn_for_has_the_first_seed_alone(trace: str, tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.toml"
    drawn.write_text("service_distribution = 'exponential'\n")
    mine = tmp_path / "mine.py"
    mine.write_text("from streamgroup.groupings.sg import Params, start\n")
    given = {**GOOD, "traces": [trace], "groupings": ["kafka", "fish", str(mine)], "workers": ["4"], "seed": ["3,5"]}

    def found(**more: Any) -> tuple[list[tuple[str, int, int]], list[str], int]:
        spec = make_spec({**given, **more})
        cells, again = cells_of(spec, open_traces([trace]))
        seeds = [(cell.options.grouping, cell.options.seed, cell.options.hash_seed) for cell in cells]
        return seeds, groupings_without_draws(spec, cells), again

    own = [(str(mine), 3, 3), (str(mine), 5, 5)]
    assert found() == ([("kafka", 3, 3), ("fish", 3, 3), *own], ["kafka", "fish"], 0)
    seeds, fixed, again = found(arrivals=["rate=9,poisson=9"], groupings=["kafka"], hash_seed=2)
    assert (seeds, fixed, again) == ([("kafka", 3, 2), ("kafka", 3, 2), ("kafka", 5, 2)], ["kafka"], 0)
    assert found(groupings=["kg", "sg_random"], hash_seed=2) == (
        [("kg", 3, 2), ("sg_random", 3, 2), ("sg_random", 5, 2)], ["kg"], 0,
    )  # fmt: skip
    assert found(capacity=[str(drawn)], groupings=["kafka"]) == ([("kafka", 3, 3), ("kafka", 5, 5)], [], 0)
    assert found(seed=["3,3"], groupings=["kafka", "kg"]) == ([("kafka", 3, 3), ("kg", 3, 3)], [], 2)
