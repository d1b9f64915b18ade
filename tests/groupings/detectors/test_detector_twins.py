"""Every detector against its naive twin, tuple by tuple: on its own over small random streams, and in whole replays."""

import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.base import modules_by_name
from streamgroup.base.compiling.plain_python import view
from streamgroup.groupings._detector_parameter import DETECTORS as DETECTORS_OF_PACKAGE
from streamgroup.groupings.protocol import WorkersChange
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.groupings.contexts_and_worker_changes import context
from tests.groupings.test_against_naive_twins import agree, options, stream
from tests.metrics.compare_with_naive import tables
from tests.naive.detectors import DETECTORS, make_detector
from tests.naive.groupings.grouping_by_text import parameters
from tests.naive.groupings.simple_groupings import Setting
from tests.naive.groupings.simple_groupings import WorkersChange as Change
from tests.naive.kernels.hashes_and_draws import hash_key
from tests.naive.metrics import metrics as naive
from tests.naive.replay.random_scenarios import Scenario
from tests.traces_by_hand import write_trace

KEYS = 40
NAMES = [b"%d" % key for key in range(KEYS)]
HASHES = np.array([hash_key(name)[0] for name in NAMES], dtype=np.uint64).view(np.int64)


class Event(NamedTuple):
    """A tuple of a source, with the number of its key; or, of source -1, the number of workers from now on."""

    source: int
    number: int


class Pair:
    """The detector and its twin, in one and the same place."""

    def __init__(self, text: str, workers: int, sources: int) -> None:
        name, _, rest = text.partition(",")
        given = {**parameters(rest), "detector": name}
        selection = select("w_choices:" + ",".join(f"{key}={value}" for key, value in given.items()))
        self.params, self.sources = selection.params, sources
        self.fast = selection.module.start(self.params, self.context(workers)).detector
        self.code = view(self.fast)
        del given["detector"]
        self.twin = make_detector(name, Setting(workers, sources), given)

    def context(self, workers: int) -> Any:
        made = context(list(range(workers)), self.sources, params=self.params)
        return made._replace(keys=KEYS, hash_lo=HASHES)

    def workers_changed(self, workers: int) -> None:
        change = WorkersChange(0, np.arange(workers), (), ())
        self.fast = self.fast.workers_changed(change, self.context(workers))
        self.code = view(self.fast)
        self.twin.workers_changed(Change(0, list(range(workers)), [], []))

    def feed(self, source: int, key: int) -> None:
        while hasattr(self.fast, "room") and self.fast.room[0] < 1:
            self.fast = self.fast.grown()
            self.code = view(self.fast)
        self.code.tick(0)
        self.twin.tick(0)
        found, wanted = self.code.detect(source, key, 0), self.twin.detect(source, NAMES[key], 0)
        assert found == wanted
        assert self.fast.held[source] == self.twin.held(source)
        assert self.fast.entries[0] == self.twin.entries()
        assert self.fast.total[source] == self.twin.tuples[source]
        if self.twin.tuples[source] >= self.twin.min_count:
            assert self.hottest(source) == self.twin.hottest(source)

    def hottest(self, source: int) -> list[int]:
        estimates = np.zeros(self.fast.most, dtype=np.int64)
        size = self.code.hottest(source, estimates.data)
        return [int(value) for value in estimates[:size]]


def choice(name: str, *values: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(values).map(lambda value: f",{name}={value}")


SHARED = st.tuples(
    choice("theta", "1/5n", "1/n", "2/n", "1/3", "0.3", "1", "1/7", "0.05"),
    choice("strict", "false", "true"),
    choice("min_count", 1, 1, 7),
).map("".join)
SKETCH = (choice("rows", 1, 2, 4), choice("columns", 0, 1, 3, 8), choice("capacity", 0, 1, 2, 5))
OWN: dict[str, tuple[st.SearchStrategy[str], ...]] = {
    "space_saving": (
        choice("capacity", 0, 1, 2, 3, 6),
        choice("estimate", "count", "count+error", "count-error"),
        choice("replacement", "true", "false"),
    ),
    "decayed_space_saving": (
        choice("capacity", 0, 1, 2, 3, 6),
        choice("alpha", 0, 0.001, 0.1, 0.2, 0.3, 0.5, 0.9, 1),
        choice("epoch", 1, 2, 3, 10, 1000),
        choice("f_mode", "ratio", "epoch_end"),
    ),
    "lossy_counting": (choice("bucket", 0, 1, 2, 3, 5, 10, 40),),
    "count_min": SKETCH,
    "ada_cms": (
        *SKETCH,
        choice("emphasis", "exponential", "linear"),
        choice("base", 1, 1.0015, 1.4, 4),
        choice("epoch", 1, 2, 5, 100),
    ),
    "wcss": (choice("window", 0, 1, 4, 9, 20, 30), choice("blocks", 0, 1, 2, 3, 5, 8)),
    "exact": (),
}
# By rank a key comes up 10, 7, 5, 4, 4, 3, 1, 1, ... times in 62. The last few change the number of workers.
SKEWED = [key for key in range(35) for _ in range(max(1, 10 // (key + 1) + (0 < key < 6) * 2))]
EVENTS = [Event(source, key) for source in (0, 0, 0, 1) for key in SKEWED] + [Event(-1, n) for n in (1, 2, 3, 5, 8, 12)]
STREAMS = st.binary(min_size=80, max_size=160).map(lambda data: [EVENTS[byte % len(EVENTS)] for byte in data])
few = settings(deadline=None, max_examples=20)


def agree_on(text: str, workers: int, events: list[Event]) -> None:
    pair = Pair(text, workers, sources=2)
    for source, number in events:
        if source < 0:
            pair.workers_changed(number)
        else:
            pair.feed(source, number)


def test_every_detector_has_one() -> None:
    """That of synopsis is compared in replays alone: here and as part of dstream."""
    assert sorted(DETECTORS) == modules_by_name.names(DETECTORS_OF_PACKAGE)
    assert sorted(DETECTORS) == sorted([*OWN, "synopsis"])


@pytest.mark.parametrize("name", OWN)
def test_the_same_as_the_twin(name: str) -> None:
    @few
    @given(st.tuples(SHARED, *OWN[name]).map("".join), st.integers(1, 6), STREAMS)
    def run(parameters_: str, workers: int, events: list[Event]) -> None:
        agree_on(name + parameters_, workers, events)

    run()


def skewed(count: int, most_workers: int) -> list[Event]:
    """Other keys become hot half-way; workers change at one in fifty tuples."""
    rng = random.Random(5)
    events = []
    for place, key in enumerate(rng.choices(range(KEYS), [(rank + 1) ** -1.2 for rank in range(KEYS)], k=count)):
        if rng.random() < 0.02:
            events.append(Event(-1, rng.randint(1, most_workers)))
        events.append(Event(rng.randrange(2), key if place < count // 2 else KEYS - 1 - key))
    return events


# Defaults, and values at which what is rare happens: full heaps and tables, fractions that are rounded, several
# overflows in a block. In floating point 1/49 of 49 is less than 1.
LONG = [
    "decayed_space_saving",
    "decayed_space_saving,theta=1/20,alpha=0.001,epoch=3,capacity=6",
    "decayed_space_saving,theta=1/20,alpha=0.9,epoch=5,capacity=9,f_mode=epoch_end",
    "decayed_space_saving,theta=1/49,alpha=1,strict=true",
    "lossy_counting",
    "lossy_counting,theta=0.12345678,bucket=9",
    "lossy_counting,theta=1/20,bucket=61",
    "count_min",
    "count_min,theta=1/10,columns=9,rows=2,capacity=3",
    "count_min,theta=0.01,columns=70,capacity=4,strict=true",
    "ada_cms",
    "ada_cms,theta=1/10,columns=9,rows=2,capacity=3,base=1.4,epoch=9,strict=true",
    "ada_cms,theta=1/49,base=1,strict=true",
    "wcss",
    "wcss,theta=1/10,window=100,blocks=30",
    "wcss,theta=1/10,window=37,blocks=12",
    "exact",
]


@pytest.mark.parametrize("text", LONG)
def test_the_same_over_a_longer_stream(text: str) -> None:
    agree_on(text, 3, skewed(700, 9))


def test_the_same_where_a_fraction_is_rounded_down() -> None:
    """theta - 1/349 is above 3/10 by a billionth, and below it as a multiple of 2^-28: 3 of 10 tuples are enough."""
    pair = Pair("lossy_counting,theta=0.30286533,bucket=349,min_count=10", 3, sources=1)
    for key in (2, 3, 4, 5, 6, 7, 8, 1, 1, 1):
        pair.feed(0, key)
    assert pair.hottest(0) == [3]


@pytest.mark.parametrize(
    "text",
    [
        "ada_cms,theta=1/9,columns=9,rows=1,capacity=3,base=4,epoch=1",
        "decayed_space_saving,theta=1/9,alpha=0.25,epoch=1,capacity=3",
    ],
)
def test_the_same_when_floats_are_scaled_down(text: str) -> None:
    """Otherwise they would overflow at the 513th tuple of a source."""
    agree_on(text, 3, skewed(1200, 9))


# Of each detector, in groupings that use what is estimated and in those that do not.
REPLAYS = [
    "d_choices:recompute_every=1,detector=decayed_space_saving,theta=1/20,epoch=30,capacity=12,f_mode=epoch_end",
    "greedy_freq:detector=decayed_space_saving,epoch=50,alpha=0.5",
    "d_choices:recompute_every=1,prefixes=all,detector=lossy_counting,theta=1/10,bucket=30",
    "w_choices:detector=lossy_counting",
    "d_choices:recompute_every=7,detector=count_min,theta=1/15,columns=30,rows=2,capacity=9",
    "rr:detector=count_min,theta=1/15,columns=30,min_count=20",
    "d_choices:recompute_every=1,detector=ada_cms,theta=1/15,columns=30,rows=2,capacity=9,base=1.4,epoch=20",
    "greedy_freq:detector=ada_cms,emphasis=linear,epoch=10",
    "d_choices:recompute_every=1,detector=wcss,theta=1/15,window=80,blocks=40",
    "w_choices:detector=wcss,theta=1/15,window=80,blocks=60,strict=true",
    "d_choices:recompute_every=1,detector=exact,theta=1/30,strict=true,min_count=20",
    # Their tables may have no hot key when a tuple is hot.
    "d_choices:recompute_every=3,detector=lossy_counting,theta=1/n,bucket=3",
    "d_choices:detector=wcss,theta=1/20,window=40,blocks=3",
    "greedy_d:scope=head,d=4,detector=exact",
    "w_choices:detector=synopsis,r=1,zeta=1,p=0.1,coin_delay=2ms",
    "dstream:detector=space_saving,theta=1/20",
    "dstream:detector=wcss,theta=1/15,window=80,blocks=40",
]


@pytest.mark.parametrize("text", REPLAYS)
def test_the_same_choices_in_a_replay(text: str, tmp_path: Path) -> None:
    """From one worker on, so that theta falls to a ninth, and so that more keys are hot than at the start."""
    joins = tuple(str(at) for at in range(40, 120, 10))
    changes = {"join": (*joins, "300"), "leave": ("200:2", "320"), "crash": ("250:0",), "redeliver": True}
    given = options(text, workers=1, sources=2, control_delay="3ms", network_delay="1ms", **changes)
    agree(stream("evolving", 400), given, tmp_path, interpreted=True)


@pytest.mark.parametrize("grouping", ["w_choices", "dstream"])
@pytest.mark.parametrize("name", DETECTORS)
def test_the_same_entries_and_bytes(grouping: str, name: str, tmp_path: Path) -> None:
    tuples = stream("evolving", 100)
    given = options(f"{grouping}:detector={name}{',r=1' if name == 'synopsis' else ',theta=1/10'}", window="7")
    scenario = Scenario(tuples, given)
    run = scenario.run()
    trace = open_trace(write_trace(tmp_path / "x.trace", tuples))
    outcome = replay(trace, ReplayOptions(**given), interpreted=True)
    found, wanted = summary(outcome), naive.metrics(run, scenario.window())["summary"]
    names = ["detector_entries", "detector_bytes", "source_state_entries", "source_state_bytes", "control_bytes"]
    assert {metric: found[metric] for metric in names} == {metric: wanted[metric] for metric in names}
    held = [choice.detector_entries for choice in run.choices]
    assert tables(outcome)["windows"]["detector_entries"].to_list() == [*held[6::7], held[-1]]
