"""Detectors of hot keys: what each structure guarantees, and what all of them have in common."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from streamgroup.base import modules_by_name
from streamgroup.base.compiling.plain_python import view
from streamgroup.base.errors import UsageError
from streamgroup.groupings._detector_parameter import DETECTORS
from streamgroup.groupings.detectors import exact, lossy_counting
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.counts import key_tables_of_sources
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.groupings.contexts_and_worker_changes import KEYS, context
from tests.naive.kernels.space_saving import Decayed
from tests.traces_by_hand import write_trace

NAMES = modules_by_name.names(DETECTORS)
COUNTING = [name for name in NAMES if name != "synopsis"]
# Parameters with which a stream of some thousand tuples reaches every rule.
SMALL = {
    "space_saving": "theta=1/20,capacity=30",
    "decayed_space_saving": "theta=1/20,epoch=90,capacity=30",
    "lossy_counting": "theta=1/20,bucket=60",
    "count_min": "theta=1/20,columns=30,rows=2,capacity=9",
    "ada_cms": "theta=1/20,columns=30,rows=2,capacity=9,base=1.4,epoch=20",
    "wcss": "theta=1/20,window=300,blocks=100",
    "exact": "theta=1/20",
    "synopsis": "r=1",
}
STREAMS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9) | st.integers(0, 60)), max_size=250)
few = settings(deadline=None, max_examples=25)


class Fed:
    """A detector that is interpreted, and grows when it must."""

    def __init__(self, text: str, workers: int = 8, sources: int = 2) -> None:
        selection = select(f"w_choices:detector={text}")
        self.state = selection.module.start(selection.params, context(list(range(workers)), sources)).detector
        self.most = getattr(self.state, "most", 0)
        self.code = view(self.state)

    def detect(self, source: int, key: int) -> int:
        while hasattr(self.state, "room") and self.state.room[0] < 1:
            self.state = self.state.grown()
            self.code = view(self.state)
        return int(self.code.detect(source, key, 0))

    def hottest(self, source: int) -> list[int]:
        estimates = np.zeros(self.most, dtype=np.int64)
        size = self.code.hottest(source, estimates.data)
        return estimates[:size].tolist()  # type: ignore[no-any-return]


def skewed(count: int, seed: int = 1) -> list[int]:
    """Keys of which others become hot half-way."""
    keys = np.random.default_rng(seed).zipf(1.3, count) % KEYS
    keys[count // 2 :] = KEYS - 1 - keys[count // 2 :]
    return keys.tolist()  # type: ignore[no-any-return]


@few
@given(STREAMS, st.integers(2, 30), st.booleans())
def test_exact_counts(stream: list[tuple[int, int]], least: int, strict: bool) -> None:
    fed, true = Fed(f"exact,theta=1/{least},strict={strict}"), [Counter[int](), Counter[int]()]
    for source, key in stream:
        true[source][key] += 1
        count, total = true[source][key], true[source].total()
        hot = count * least > total if strict else count * least >= total
        assert fed.detect(source, key) == (count if hot else 0)
    for source, counts in enumerate(true):
        hot_counts = (c for c in counts.values() if c * least >= counts.total() + strict)
        assert fed.hottest(source) == sorted(hot_counts, reverse=True)
        assert fed.state.held[source] == len(counts)
    assert fed.state.entries[0] == sum(map(len, true))


def test_exact_counts_grow() -> None:
    """More keys than there is room for at the start."""
    fed = Fed("exact,theta=1/2", sources=1)
    state = fed.state
    fed.state = state._replace(
        counts=state.counts._replace(rows=state.counts.rows[:, :4].copy(), places=np.zeros((8, 2), dtype=np.int64))
    )
    fed.state.room[0] = 4
    fed.code = view(fed.state)
    keys = skewed(800)
    for key in keys:
        fed.detect(0, key)
    true = Counter(keys)
    rows = fed.state.counts.rows[0, : len(true)]
    assert {int(key): int(count) for key, count, _ in rows} == true
    assert fed.state.counts.rows.shape[1] >= len(true)


@few
@given(STREAMS, st.integers(2, 20), st.integers(2, 9))
def test_lossy_counting(stream: list[tuple[int, int]], bucket: int, least: int) -> None:
    """No key of a share of theta is missed, none below theta - epsilon is hot; counts are low by epsilon at most."""
    fed, true = Fed(f"lossy_counting,theta=1/{least},bucket={bucket}"), [Counter[int](), Counter[int]()]
    for source, key in stream:
        true[source][key] += 1
        total, count = true[source].total(), true[source][key]
        found = fed.detect(source, key)
        if count * least >= total:
            assert found > 0
        if found:
            assert found <= count <= found + total // bucket
            assert found * least * bucket >= total * (bucket - least)
        state = fed.state
        rows = state.counts.rows[source, : state.counts.used[source]].tolist()
        assert state.held[source] == len(rows)
        held = {key: (low, missed) for key, low, missed in rows}
        for key, true_count in true[source].items():
            low, missed = held.get(key, (0, total // bucket))
            assert low <= true_count <= low + missed <= low + total // bucket


@few
@given(STREAMS, st.integers(1, 3), st.integers(4, 40), st.integers(2, 12))
def test_count_min(stream: list[tuple[int, int]], rows: int, columns: int, least: int) -> None:
    """Estimates are never too low, so that no hot key is missed while the heap has room."""
    text = f"theta=1/{least},rows={rows},columns={columns},capacity=80"
    fed, true = Fed(f"count_min,{text}"), [Counter[int](), Counter[int]()]
    for source, key in stream:
        true[source][key] += 1
        total, count = true[source].total(), true[source][key]
        found = fed.detect(source, key)
        assert found == 0 or found >= count
        assert found * least >= total or (found == 0 and count * least < total)
        state = fed.state
        assert state.cells[source].reshape(rows, columns).sum(axis=1).tolist() == [total] * rows
        assert state.held[source] == (rows * columns + 1) // 2 + state.heap.used[source]
        assert state.entries[0] == state.held.sum()
        # Never more than what is hot by its estimate; the true ones are among them.
        hottest = fed.hottest(source)
        assert hottest == sorted(hottest, reverse=True)
        assert all(value * least >= total for value in hottest)
        assert len(hottest) >= sum(c * least >= total for c in true[source].values())


@pytest.mark.parametrize("capacity", [1, 3])
def test_a_full_heap_keeps_the_largest(capacity: int) -> None:
    fed = Fed(f"count_min,theta=1/100,columns=4096,capacity={capacity}", sources=1)
    keys = [key for key in range(8) for _ in range(key + 1)]
    for key in keys:
        fed.detect(0, key)
    assert fed.hottest(0) == [8, 7, 6][:capacity]
    # As large as the least is not enough.
    found = [fed.detect(0, 20) for _ in range(10)]
    assert [count > 0 for count in found] == [count > 9 - capacity for count in range(1, 11)]


@few
@given(STREAMS, st.integers(2, 12))
def test_without_emphasis_ada_cms_is_count_min(stream: list[tuple[int, int]], least: int) -> None:
    size = f"theta=1/{least},rows=2,columns=16,capacity=5"
    plain, adaptive = Fed(f"count_min,{size}"), Fed(f"ada_cms,{size},base=1,epoch=7")
    for source, key in stream:
        assert (plain.detect(source, key) > 0) == (adaptive.detect(source, key) > 0)
    assert plain.state.cells.tolist() == adaptive.state.cells.tolist()
    assert plain.state.held.tolist() == adaptive.state.held.tolist()


@few
@given(STREAMS, st.sampled_from(["exponential", "linear"]), st.sampled_from([1.0015, 1.5, 4.0]), st.integers(1, 5))
def test_ada_cms_counts_recent_tuples_for_more(
    stream: list[tuple[int, int]], emphasis: str, base: float, epoch: int
) -> None:
    """A cell is the sum of the weights of its keys' tuples, in the proportions of f(t), also after it is scaled."""
    fed = Fed(f"ada_cms,rows=1,columns=4096,emphasis={emphasis},base={base},epoch={epoch}", sources=1)
    weights: Counter[int] = Counter()
    for _, key in stream * 3:
        time = int(fed.state.total[0]) // epoch
        if time > 600:
            break
        weights[key] += int(base**time * 2**60) if emphasis == "exponential" else time + 1
        fed.detect(0, key)
    whole = sum(weights.values())
    for key, weight in weights.items():
        cell = fed.state.cells[0, fed.state.cell_of[key, 0]]
        # Other keys may share the cell.
        assert cell / fed.state.whole[0] >= weight / whole * (1 - 1e-9)
    if weights:
        assert fed.state.cells.sum() == pytest.approx(fed.state.whole[0])


@few
@given(STREAMS, st.integers(1, 12), st.integers(1, 6))
def test_wcss(stream: list[tuple[int, int]], blocks: int, block: int) -> None:
    """Estimates are never below the count of the window, and at most four blocks above it."""
    # Everything is hot, so that everything is reported.
    fed = Fed(f"wcss,theta=0.00001,window={blocks * block},blocks={blocks}")
    window, seen = blocks * block, [list[int](), list[int]()]
    for source, key in stream:
        seen[source].append(key)
        found, total = fed.detect(source, key), len(seen[source])
        true = seen[source][-window:].count(key)
        if total <= window:
            assert true <= found <= true + total / blocks
        else:
            assert min(total, -(-true * total // window)) <= found <= -(-(true + 4 * block) * total // window)
        state = fed.state
        recorded, different = state.ends[source, 1], state.overflows.used[source]
        assert different <= recorded <= 2 * blocks
        assert state.overflows.rows[source, :different, 1].sum() == recorded
        assert len(fed.hottest(source)) >= (different if total > window else 1)


@pytest.mark.parametrize("f_mode", ["ratio", "epoch_end"])
def test_decayed_space_saving_counts_as_fish_does(f_mode: str) -> None:
    selection = select("w_choices:theta=1/20")
    fed = Fed(f"decayed_space_saving,theta=1/20,strict=true,capacity=25,epoch=70,f_mode={f_mode}", sources=1)
    naive = Decayed(25, 70, 0.2)
    theta = selection.params.hot_share(8)
    assert theta is not None
    for key in skewed(2000):
        name = b"%d" % key
        naive.offer(name)
        assert (fed.detect(0, key) > 0) == naive.is_hot(name, theta, f_mode)
        assert fed.state.held[0] == len(naive)
    assert len(fed.hottest(0)) == sum(naive.is_hot(name, theta, f_mode) for name in naive.table)


@pytest.mark.parametrize("name", COUNTING)
def test_hottest_is_the_largest_first(name: str) -> None:
    """It is what a tuple of each hot key would have been told, one tuple ago."""
    fed = Fed(f"{name},{SMALL[name]}", sources=1)
    for place, key in enumerate(skewed(1500)):
        found = fed.detect(0, key)
        hottest = fed.hottest(0)
        assert hottest == sorted(hottest, reverse=True)
        assert all(0 < value <= fed.state.total[0] for value in hottest)
        # WCSS asks those alone that overflowed.
        assert found in (0, *hottest) or name == "wcss"
        assert fed.state.total[0] == place + 1
    assert 0 < len(fed.hottest(0)) < 40


@pytest.mark.parametrize("name", COUNTING)
def test_theta_follows_the_workers_and_nothing_is_hot_at_first(name: str) -> None:
    # By what is expected of a whole epoch nothing is hot after 30 tuples.
    now = ",f_mode=ratio" if name == "decayed_space_saving" else ""
    fed = Fed(f"{name},theta=1/n,min_count=30{now}", workers=2, sources=1)
    assert [fed.detect(0, 7) > 0 for _ in range(40)] == [False] * 29 + [True] * 11
    before = fed.state
    fed.state = before.workers_changed(None, context([0, 1, 2, 3, 4]))
    assert type(fed.state) is type(before)
    # Lossy counting is too low by at most a tuple of each bucket.
    wanted = Fraction(1, 5) - (Fraction(1, before.bucket) if name == "lossy_counting" else 0)
    threshold = fed.state.threshold
    assert (Fraction(threshold.numerator, threshold.denominator), threshold.share) == (wanted, float(wanted))
    assert fed.state.total is before.total


@pytest.mark.parametrize("name", NAMES)
def test_every_grouping_takes_it(name: str, tmp_path: Path) -> None:
    """Workers join and leave; what is held is reported, and sources count for themselves."""
    names = [b"%d" % key for key in skewed(1500)]
    trace = open_trace(write_trace(tmp_path / "x.trace", [(at, key, None) for at, key in enumerate(names)]))
    needy = [] if name == "synopsis" else ["d_choices", "greedy_freq"]
    for grouping in ["w_choices", "rr", "dstream", "greedy_d", *needy]:
        text = f"{grouping}:detector={name},{SMALL[name]}{',scope=head' if grouping == 'greedy_d' else ''}"
        options = ReplayOptions(
            grouping=text, workers=4, sources=2, arrivals="rate=1000", join=("30%",), leave=("60%",)
        )
        outcome = replay(trace, options, interpreted=True)
        row = summary(outcome)
        assert 0 < outcome.hot_tuples < 1500, text
        assert row["source_state_entries"], text
        assert replay(trace, options, interpreted=True).hot_tuples == outcome.hot_tuples


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTING)
def test_compiled_as_interpreted(name: str) -> None:
    """Slow, as each is compiled: some seconds."""

    @njit(_nrt=False)
    def run(state, keys, found, estimates, sizes):  # type: ignore[no-untyped-def]
        for place in range(keys.shape[0]):
            found[place] = state.detect(place % 2, keys[place], place)
            sizes[place] = state.hottest(place % 2, estimates)

    keys = skewed(3000)
    compiled, plain = Fed(f"{name},{SMALL[name]}"), Fed(f"{name},{SMALL[name]}")
    if hasattr(compiled.state, "grown"):
        compiled.state = compiled.state.grown().grown()
    found, sizes = np.zeros((2, len(keys)), dtype=np.int64)
    estimates = np.zeros(compiled.most, dtype=np.int64)
    run(compiled.state, np.array(keys), found, estimates, sizes)
    wanted = [(plain.detect(place % 2, key), plain.hottest(place % 2)) for place, key in enumerate(keys)]
    assert found.tolist() == [count for count, _ in wanted]
    assert sizes.tolist() == [len(hottest) for _, hottest in wanted]
    assert estimates[: sizes[-1]].tolist() == wanted[-1][1]
    assert compiled.state.held.tolist() == plain.state.held.tolist()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("lossy_counting,bucket=100", "every key is hot"),
        ("count_min,columns=100", "cold keys can pass for hot"),
        ("ada_cms,capacity=10", "hot keys can be missed"),
        ("wcss,blocks=500", "every key can pass for hot"),
        ("space_saving,capacity=10", "can pass for hot"),
    ],
)
def test_too_small_a_structure_is_warned_of(text: str, warning: str) -> None:
    (doubt,) = select(f"w_choices:detector={text}").params.doubts(50, 1, 10_000)
    assert warning in doubt
    assert not select(f"w_choices:detector={text.partition(',')[0]}").params.doubts(50, 1, 10_000)


@pytest.mark.parametrize(
    "text", ["count_min,columns=16777216,rows=16", "wcss,blocks=1048576", "space_saving,theta=0.0000001"]
)
def test_too_large_a_structure_is_refused(text: str) -> None:
    selection = select(f"w_choices:detector={text}")
    huge = context([0, 1], sources=2)._replace(sources=64, keys=1 << 25)
    with pytest.raises(UsageError, match="cells of memory"):
        selection.module.start(selection.params, huge)


@pytest.mark.parametrize("name", ["exact", "lossy_counting"])
def test_what_to_do_is_said_where_a_table_cannot_grow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fed = Fed(name)
    fed.state = fed.state._replace(counts=fed.state.counts._replace(keys=1 << 20))
    monkeypatch.setattr(key_tables_of_sources, "MOST_CELLS", fed.state.counts.rows.size)
    with pytest.raises(UsageError, match=f"detector={name}: .* cells of memory") as caught:
        fed.state.grown()
    assert caught.value.hint == "use fewer sources, or another detector"


@pytest.mark.parametrize("module", [exact, lossy_counting])
def test_room_is_that_of_the_source_that_holds_most(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """While keys enter, leave, and the tables grow."""
    monkeypatch.setattr(module, "_ROOM", 4)
    fed = Fed(f"{module.__name__.rpartition('.')[2]}{',bucket=9' if module is lossy_counting else ''}")
    for place, key in enumerate(skewed(400)):
        fed.detect(place % 7 % 2, key)
        assert fed.state.room[0] == call(key_tables_of_sources.headroom, fed.state.counts)
    assert 4 < fed.state.counts.rows.shape[1] < KEYS


@pytest.mark.parametrize("name", ["exact", "lossy_counting"])
def test_a_new_key_takes_as_long_with_many_sources(name: str) -> None:
    """The tables of other sources are not read: what is written there behind the detector's back goes unnoticed."""
    fed = Fed(name)
    state = fed.state = fed.state._replace(counts=fed.state.counts._replace(keys=1 << 20))
    capacity = state.counts.rows.shape[1]
    state.room[0], state.counts.used[1] = capacity, capacity
    fed.code = view(state)
    for key in range(5):
        fed.detect(0, key)
    assert state.room[0] == capacity - 5


@pytest.mark.parametrize(
    ("grouping", "entries", "octets"),
    [
        ("dstream", 1024, 1024),
        ("w_choices:detector=synopsis", 1024 + 16 * 4, 1024 + 16 * 4),
        ("rr:detector=synopsis,filter=exact", 16 * 4, 16 * 4),
        ("w_choices:detector=exact", 1 + 4, 16 * (1 + 4)),
    ],
)
def test_counters_of_a_filter_are_bytes_beside_loads_too(
    grouping: str, entries: int, octets: int, tmp_path: Path
) -> None:
    """A source holds a filter of 1024 counters, or one key; and a load of 16 bytes for each of four workers."""
    trace = open_trace(write_trace(tmp_path / "x.trace", [(at, b"a", None) for at in range(9)]))
    row = summary(replay(trace, ReplayOptions(grouping, 4, sources=2), interpreted=True))
    assert (row["source_state_entries"], row["source_state_bytes"]) == (entries, octets)
