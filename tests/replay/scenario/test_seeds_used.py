"""A seed is a replicate: what depends on it, and what is the same under every seed."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import family
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.seeds_used import SEEDS, seeds_used
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

# Where a parameter decides whether the seed matters.
VARIANTS = [
    "kg:ring=true", "w_choices:detector=synopsis", "dstream:detector=space_saving",
    "fish:ring=false", "fish:head=d", "full_knowledge:backlog=true", "storm_pkg:version=1", "salted:pick=random",
    "load_aware:rule=storm",
]  # fmt: skip

# Where nothing is drawn in so short a stream with the default times.
SHORT = {"dalton": "dalton:window=200ms,slide=50ms"}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(5)
    keys = rng.zipf(1.3, 3000) % 200
    times = np.cumsum(rng.integers(0, 600, 3000))
    tuples = [(int(time), b"key %d" % key, None) for time, key in zip(times, keys, strict=True)]
    return open_trace(write_trace(tmp_path_factory.mktemp("seeds") / "t", tuples))


def served(trace: Trace, options: ReplayOptions, folder: Path) -> Any:
    """Every tuple with its source, worker and times."""
    replay(trace, options, log_directory=folder)
    return pq.read_table(folder)


@given(st.integers(0, 2**63 - 1), st.none() | st.integers(0, 2**63 - 1))
@settings(max_examples=50, deadline=None)
def test_the_hash_seed_is_the_seed_unless_it_is_given(seed: int, given_one: int | None) -> None:
    how = {} if given_one is None else {"hash_seed": given_one}
    options = ReplayOptions("kg", 4, seed=seed, **how)
    assert options.hash_seed == (seed if given_one is None else given_one)
    assert replace(options, workers=5).hash_seed == options.hash_seed


def test_a_seed_moves_keys_as_the_hash_seed_does(trace: Trace, tmp_path: Path) -> None:
    options = ReplayOptions("kg", 7)
    plain = served(trace, options, tmp_path / "plain")
    assert served(trace, ReplayOptions("kg", 7, seed=0, hash_seed=0), tmp_path / "zero") == plain
    moved = served(trace, ReplayOptions("kg", 7, seed=1), tmp_path / "seed")
    assert moved["worker"] != plain["worker"]
    assert moved == served(trace, ReplayOptions("kg", 7, hash_seed=1), tmp_path / "hash")
    assert served(trace, ReplayOptions("kg", 7, seed=1, hash_seed=0), tmp_path / "both") == plain


@pytest.mark.parametrize("name", [*(SHORT.get(name, name) for name in family()), *VARIANTS])
def test_a_grouping_uses_the_seeds_that_it_declares(trace: Trace, tmp_path: Path, name: str) -> None:
    found = set()
    for which in SEEDS:
        first, *others = (
            served(trace, replace(ReplayOptions(name, 7), **{which: seed}), tmp_path / f"{which}{seed}")["worker"]
            for seed in range(3)
        )
        if any(other != first for other in others):
            found.add(which)
    assert seeds_used(asdict(ReplayOptions(name, 7))) == found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"arrivals": "rate=3000"}, False),
        ({"arrivals": "poisson=3000"}, True),
        ({"arrivals": "poisson-utilization=0.7"}, True),
        ({"arrivals": "saturate", "max_pending": 10}, False),
        ({"source_assignment": "key"}, False),
        ({"source_assignment": "random"}, True),
        ({"service_distribution": "deterministic"}, False),
        ({"service_distribution": "exponential"}, True),
        ({"service_distribution": "lognormal:0.5"}, True),
        ({"speed_jitter": "0.3:100"}, True),
        ({"slowdown": "half:2"}, False),
        ({"leave": ("30%",), "crash": ("50%:1",)}, False),
        ({"leave": ("30%:random", "60%:random")}, True),
        ({"crash": ("30%:random", "60%:random")}, True),
    ],
)
def test_a_run_depends_on_the_seed_where_an_option_draws(
    trace: Trace, tmp_path: Path, options: dict[str, Any], expected: bool
) -> None:
    chosen = ReplayOptions("kafka", 7, **options)
    first, *others = (
        served(trace, replace(chosen, seed=seed, hash_seed=seed), tmp_path / str(seed)) for seed in range(4)
    )
    assert any(other != first for other in others) is expected
    assert seeds_used(asdict(chosen)) == {*["seed"] * expected}


def test_a_file_of_the_users_counts_as_one_that_draws(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from streamgroup.groupings.sg import Params, start\n")
    assert seeds_used(asdict(ReplayOptions(str(file), 7))) == set(SEEDS)
    file.unlink()
    assert seeds_used(asdict(ReplayOptions(str(file), 7))) == set(SEEDS)
