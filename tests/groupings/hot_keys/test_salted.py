"""Salted keys: what salting does to a hot key, which keys are salted, and in what order salts come."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.replay_run import make_run
from streamgroup.traces.trace import Trace, open_trace
from tests.groupings.contexts_and_worker_changes import KEYS, changed, chosen, context, started
from tests.naive.kernels.hashes_and_draws import candidate
from tests.traces_by_hand import write_trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A stream of 400 keys, of which the hottest has about a fifth."""
    rng = np.random.default_rng(5)
    keys = rng.choice(400, 4000, p=np.array([0.2] + [0.8 / 399] * 399))
    tuples = [(1000 * place, b"key %d" % key, None) for place, key in enumerate(keys)]
    return open_trace(write_trace(tmp_path_factory.mktemp("salted") / "t", tuples))


def run(trace: Trace, text: str, log: Path | None = None) -> dict[str, Any]:
    options = ReplayOptions(text, 10, sources=3, hash_seed=2)
    return summary(replay(trace, options, log_directory=log, interpreted=True))


@pytest.mark.parametrize("pick", ["round_robin", "random"])
def test_salting_the_hot_key_lowers_the_peak(trace: Trace, pick: str) -> None:
    """The hot key alone is twice a worker's mean load; its 16 salts are spread over most of ten workers."""
    by_key, salted = run(trace, "kg"), run(trace, f"salted:top=1,salts=16,pick={pick}")
    assert by_key["peak_to_mean"] > 2
    assert salted["peak_to_mean"] < 0.8 * by_key["peak_to_mean"]
    (hottest,) = trace.key_bytes([0])
    assert salted["replicas"] - by_key["replicas"] == len({candidate(hottest, j, 10, 2) for j in range(1, 17)}) - 1
    assert salted["choices_max"] == 10
    assert salted["hot_keys_mean"] == 1
    assert salted["hot_precision"] == 1


@pytest.mark.parametrize("pick", ["round_robin", "random"])
def test_one_salt_is_key_grouping(trace: Trace, tmp_path: Path, pick: str) -> None:
    by_key, salted = run(trace, "kg", tmp_path / "kg"), run(trace, f"salted:salts=1,pick={pick}", tmp_path / "salted")
    assert pq.read_table(tmp_path / "salted") == pq.read_table(tmp_path / "kg")
    for metric in (
        "peak_to_mean",
        "imbalance",
        "replicas",
        "memory_estimate",
        "source_state_entries",
        "latency_p99_ms",
    ):
        assert salted[metric] == by_key[metric]


def test_the_most_frequent_keys_are_salted_whatever_their_ids() -> None:
    """Of equally frequent ones the one with the lower id comes first."""
    state = started("salted:top=3", 9)
    counts = context(list(range(9))).counts
    assert counts is not None
    assert counts[0] == 0
    assert state.salted.tolist() == sorted(range(KEYS), key=lambda key: (-counts[key], key))[:3]
    for key in range(KEYS):
        state.choose(0, key, 0)
        assert state.choices[0] == (8 if key in state.salted else 0)


def test_there_may_be_fewer_keys_than_are_to_be_salted() -> None:
    state = started("salted:top=10000", 9)
    assert sorted(state.salted.tolist()) == list(range(KEYS))
    assert state.state_entries == KEYS


def test_salts_come_in_turn_for_each_key_and_source() -> None:
    state = started("salted:salts=5,top=2", 50, sources=7)
    one, other = state.salted.tolist()
    workers = context(list(range(50))).candidates(5).tolist()
    assert chosen(state, 0, 7, one) == [*workers[one], *workers[one][:2]]
    assert chosen(state, 0, 2, other) == workers[other][:2]
    # Source 6 starts at salt 6 mod 5.
    assert chosen(state, 6, 5, one) == [*workers[one][1:], workers[one][0]]
    live = [1, 3, 60]
    after = changed(state, live, joined=(60,), left=tuple(set(range(50)) - set(live)))
    workers = context(live).candidates(5).tolist()
    assert chosen(after, 0, 4, one) == [*workers[one][2:], workers[one][0]]
    assert after.choices[0] == 3


def test_random_salts_are_even_and_all_keys_of_a_source_share_its_draws() -> None:
    state = started("salted:salts=4,top=2,pick=random", 50, sources=2)
    one, other = state.salted.tolist()
    workers = context(list(range(50))).candidates(4).tolist()
    assert len(set(workers[one])) == 4
    found = Counter(chosen(state, 0, 4000, one))
    assert set(found) == set(workers[one])
    assert max(abs(count - 1000) for count in found.values()) < 5 * (4000 * 3 / 16) ** 0.5
    chosen(state, 0, 10, other)
    assert state.drawn.tolist() == [4010, 0]


def test_named_keys_are_salted_in_place_of_the_most_frequent(tmp_path: Path) -> None:
    """Keys of the contexts are the texts of their ids; a line may end with CRLF, be empty, or name no key there is."""
    names = tmp_path / "names"
    names.write_bytes(b"17\r\n\n4\n17\nnobody\n4 \n499")
    state = started(f"salted:keys={names}", 9)
    assert state.salted.tolist() == [4, 17, 499]
    assert state.state_entries == 3
    assert len(set(chosen(state, 0, 8, 17))) > 1
    assert len(set(chosen(state, 0, 8, 5))) == 1
    assert not started(f"salted:keys={names},salts=1", 9).salted.size


def test_a_file_and_a_number_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="keys and top are two ways"):
        select(f"salted:keys={tmp_path / 'names'},top=10")


def test_named_keys_that_the_trace_does_not_have_are_counted(trace: Trace, tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("key 0\nnobody\nnobody\nno one\n")
    run = make_run(trace, ReplayOptions(grouping=f"salted:keys={names}", workers=3))
    assert f"salted: 2 of the 3 keys in {names} are not in the trace" in run.warnings
    assert run.record["grouping"]["file_digests"] == {"keys": hashlib.sha256(names.read_bytes()).hexdigest()}
    names.write_text("key 0\n")
    again = make_run(trace, ReplayOptions(grouping=f"salted:keys={names}", workers=3))
    assert not [line for line in again.warnings if "salted" in line]


def test_a_file_without_a_key_of_the_trace_is_refused(tmp_path: Path) -> None:
    names = tmp_path / "names"
    with pytest.raises(UsageError, match="No such file"):
        started(f"salted:keys={names}", 9)
    names.write_text("nobody\n")
    with pytest.raises(DataError, match="none of the keys in"):
        started(f"salted:keys={names}", 9)
