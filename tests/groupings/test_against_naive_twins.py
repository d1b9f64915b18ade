"""Every grouping against its naive twin, tuple by tuple: random, evolving and real streams, one source and several."""

import gzip
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import family
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from tests.groupings.engines.replay_real_keys import rules_of_engines
from tests.metrics.compare_with_naive import assert_same
from tests.naive.groupings.rivetti_dkg import RivettiDkg
from tests.naive.metrics.metrics import control_metrics, detector_metrics
from tests.naive.replay.options import TraceTuple
from tests.naive.replay.random_scenarios import Scenario
from tests.traces_by_hand import write_trace

REAL = Path(__file__).parents[2] / "traces" / "raw" / "jodie-wikipedia" / "wikipedia.tsv.gz"

# What each grouping is compared with: parameters that matter in streams of some thousand tuples at about 1 ms.
VARIANTS: dict[str, list[str]] = {
    "sg": [""],
    "sg_random": [""],
    "kg": ["", "ring=true", "ring=true,vnodes=3"],
    "pkg": ["", "d=3"],
    "bounded_load": ["", "c=0.001,vnodes=3", "c=1.5,vnodes=10"],
    "salted": ["", "pick=random,salts=5", "salts=20,top=3", "top=10000,salts=2", "salts=1,pick=random"],
    "greedy_d": ["d=4", "scope=head,d=5", "scope=head,theta=2/n,capacity=9"],
    "full_knowledge": [""],
    "oracle": [""],
    "w_choices": ["", "theta=1/8n,replacement=false,capacity=20", "estimate=count+error,strict=true,capacity=30"],
    "rr": ["", "theta=0.05,min_count=100", "estimate=count-error,capacity=25", "separate=true"],
    "greedy_freq": ["", "theta=2/n"],
    "d_choices": [
        "",
        "recompute_every=100",
        "recompute_every=1",
        "prefixes=all,eps=0.01",
        "recompute_every=7,start=round,slack=plain,estimate=count+error,strict=true,capacity=40",
        "recompute_every=50,replacement=false,capacity=15,theta=1/8n",
    ],
    "fish": [
        "interval=20ms",
        "interval=3ms,epoch=50,capacity=20,alpha=0.5",
        "interval=7ms,epoch=20,alpha=0,d_min=avg",
        "interval=6ms,epoch=200,f_mode=ratio",
        "interval=9ms,head=d,epoch=100,pw=oracle,scope=global",
        "hwa=false,alpha=1,head=w,capacity=5",
        "ring=false,interval=5ms,vnodes=3,d_min=3",
        "chk=false,interval=11ms,scope=global,vnodes=2",
        "drain=literal,interval=5ms",
    ],
    "dstream": [
        "r=1,zeta=1",
        "r=2,p=0.1,filter=exact,coin_delay=2ms,broadcast_delay=1ms",
        "r=0,l=3,p=0.3,counters=16,hashes=3",
        "r=1,p=0.2,decline=drawn,report=from,bit=absolute",
        "signals=code,r=1,l=4,p=0.2,counters=64",
    ],
    "dynamic_kg": [
        "warmup=5ms,teenage_period=2ms,old_period=6ms,check_interval=3ms",
        "warmup=0s,teenage_period=1ms,old_period=2ms,check_interval=1us,initial=1,load=int",
        "warmup=1ms,teenage_period=3ms,old_period=12ms,check_interval=1ms,expected_keys=20,baby_cap=9",
        "truncate=age,warmup=1ms,teenage_period=2ms,old_period=6ms,check_interval=1ms,expected_keys=30",
        "promotion=literal,warmup=1ms,teenage_period=2ms,old_period=6ms,check_interval=2ms,expected_keys=20",
    ],
    "rivetti_dkg": [
        "learning_length=300",
        "learning_length=100,relearn_every=150,mu=1,theta=0.05,epsilon_factor=1",
        "learner=source,learning_length=70,relearn_every=50",
    ],
    "posg": [
        "batch=16,mu=1,columns=20",
        "batch=8,mu=0.5,rows=2,columns=5,sync=exec,stability=literal,reply_delay=2ms,matrix_delay=1ms",
        "batch=16,mu=2,stability=skip_empty,resync_windows=2",
        "batch=4,mu=1,eps=0.2,delta=0.3,matrix_delay=20ms,reply_delay=100us",
        "unseen=zero,batch=16,mu=1,columns=20",
    ],
    "cm": ["window=30ms,slide=3ms", "score=load,window=12ms,slide=12ms,hash=mod"],
    "cam": ["window=30ms,slide=3ms", "unseen=keys,window=20ms,slide=5ms,hash=mod"],
    "dagreedy": ["theta=1/4n,window=30ms,slide=10ms", "theta=0.02,affinity=0.2,window=15ms,slide=5ms,hash=mod"],
    "dalton": [
        "theta=1/4n,window=30ms,slide=10ms",
        "theta=0.02,capacity=5,epsilon=0.4,split=1,most_split=4,window=12ms,slide=12ms,alpha=0.3,balance=0.8,hash=mod",
        "theta=0.02,sync=false,epsilon=0.25,window=40ms,slide=20ms",
    ],
    "load_aware": [
        "",
        "traverse=3,buffer=4",
        "rule=storm,report=11ms,refresh=4ms,queue=40",
    ],
    "consistent_grouping": ["window=5ms", "window=3ms,virtual=3,eps=0.5,busy=0.5,idle=0.3,signal_delay=2ms"],
}


def stream(kind: str, count: int) -> list[TraceTuple]:
    """Tuples about 100 us apart, some at one instant."""
    rng = np.random.default_rng(3)
    if kind == "real":
        with gzip.open(REAL) as lines:
            next(lines)
            names = [line.split(b"\t")[1] for line in itertools.islice(lines, count)]
    else:
        shares = 1.0 / np.arange(1, 301) ** 1.2
        drawn = rng.choice(300, count, p=shares / shares.sum())
        if kind == "evolving":
            drawn[count // 2 :] = 299 - drawn[count // 2 :]
        names = [b"key %d" % key for key in drawn]
    times = 1_600_000_000_000_000 + np.cumsum(rng.choice([0, 30, 100, 270], count))
    return [(int(at), name, None) for at, name in zip(times, names, strict=True)]


def options(text: str, **changed: Any) -> dict[str, Any]:
    return {
        "grouping": text,
        "workers": 8,
        "sources": 3,
        "source_assignment": "shuffle",
        "arrivals": "trace",
        "spread_ties": False,
        "speedup": "1",
        "max_pending": 1000,
        "service": "700us",
        "service_distribution": None,
        "slowdown": "1,1.5",
        "slowdown_at": (),
        "speed_jitter": None,
        "queue_capacity": None,
        "when_full": None,
        "join": (),
        "leave": (),
        "crash": (),
        "redeliver": False,
        "network_delay": "0",
        "control_delay": None,
        "warmup": "0",
        "window": "10%",
        "aggregate_every": None,
        "seed": 1,
        "hash_seed": 1,
        **changed,
    }


def agree(tuples: list[TraceTuple], given: dict[str, Any], directory: Path, interpreted: bool = False) -> None:
    """The same worker for every tuple, and the same of what the grouping reports."""
    scenario = Scenario(tuples, given)
    twin = scenario.grouping()
    if isinstance(twin, RivettiDkg):
        # Ties go by key ids: 0 is the most frequent key, then by bytes.
        counts = Counter(key or b"" for _, key, _ in tuples)
        twin.ids = {key: at for at, key in enumerate(sorted(counts, key=lambda key: (-counts[key], key)))}
    run = scenario.run(twin)
    trace = open_trace(write_trace(directory / "x.trace", tuples))
    outcome = replay(trace, ReplayOptions(**given), log_directory=directory / "log", interpreted=interpreted)
    logged = [pq.read_table(part) for part in sorted((directory / "log").iterdir())]
    found = [worker for part in logged for worker in part["worker"].to_pylist()]
    wanted = [record.worker for record in run.records]
    different = next((at for at, pair in enumerate(zip(found, wanted, strict=True)) if pair[0] != pair[1]), None)
    assert different is None, f"tuple {different}: {found[different]} instead of {wanted[different]}"
    finishes = [finish for part in logged for finish in part["finish_ns"].to_pylist()]
    assert finishes == [record.finish_ns for record in run.records]
    row = summary(outcome)
    # Of a tuple that was chosen for again the last choice counts, of one that was dropped none.
    allowed = {choice.seq: choice.allowed for choice in run.choices}
    accepted = [allowed[record.seq] for record in run.records if record.status != "dropped"]
    hot = [count for count in accepted if count > 0]
    assert row["choices_max"] == (max(hot) if hot else None)
    assert row["choices_mean"] == (sum(hot) / len(hot) if hot else None)
    assert row["source_state_entries"] == max(choice.state_entries for choice in run.choices)
    held = detector_metrics(run, run.records, scenario.window())
    assert row["detector_entries"] == held["detector_entries"]
    if row["detector_bytes"] is not None and hasattr(twin, "detector_entry_bytes"):
        assert row["detector_bytes"] == held["detector_bytes"]
    assert row["control_messages"] == twin.control_messages
    assert row["control_bytes"] == twin.control_bytes
    for name, value in control_metrics(run, run.records).items():
        assert_same(name, row[name], value)


CASES = [f"{name}:{parameters}" if parameters else name for name, texts in VARIANTS.items() for parameters in texts]


def test_every_grouping_is_compared() -> None:
    """The twins of rules of engines are the scalar ones, see the tests of tasks and of partitions."""
    assert sorted([*VARIANTS, *rules_of_engines()]) == family()


def streams() -> Iterator[Any]:
    """Every case over an evolving stream; over others the first of each grouping, and the rest among the slow tests."""
    for name, texts in VARIANTS.items():
        for place, parameters in enumerate(texts):
            text = f"{name}:{parameters}" if parameters else name
            for kind, sources in (("random", 1), ("evolving", 3), ("real", 2)):
                marks = () if place == 0 or kind == "evolving" else (pytest.mark.slow,)
                yield pytest.param(text, kind, sources, marks=marks)


@pytest.mark.parametrize(("text", "kind", "sources"), [*streams()])
def test_the_same_choices_as_the_twin(text: str, kind: str, sources: int, tmp_path: Path) -> None:
    agree(stream(kind, 1500), options(text, sources=sources), tmp_path)


def test_named_keys_are_salted_as_the_twin_does(tmp_path: Path) -> None:
    (tmp_path / "hot").write_bytes(b"key 4\r\n\nkey 0\nnot there\nkey 4")
    agree(stream("random", 600), options(f"salted:salts=3,keys={tmp_path / 'hot'}"), tmp_path)


def come_and_go() -> Iterator[Any]:
    """Every case interpreted; compiled, which takes seconds each, one that chooses alone and one that gets feedback."""
    for text in CASES:
        yield pytest.param(text, True)
        yield pytest.param(
            text, False, marks=() if text in ("pkg", "posg:" + VARIANTS["posg"][0]) else pytest.mark.slow
        )


@pytest.mark.parametrize(("text", "interpreted"), [*come_and_go()])
def test_the_same_while_workers_come_and_go(text: str, interpreted: bool, tmp_path: Path) -> None:
    changes = {"join": ("300", "900"), "leave": ("500:2", "1200"), "crash": ("700:0",)}
    given = options(text, control_delay="3ms", network_delay="1ms", **changes)
    agree(stream("evolving", 1500), given, tmp_path, interpreted)


SERVERS = [
    "dstream:r=1,zeta=1,p=0.1,coins=2,coin_service=150us,synopsis_service=400us",
    "dstream:r=0,zeta=2,p=0.05,signals=code,coins=7,coin_service=1ms,coin_delay=500us,filter=exact",
    "w_choices:detector=synopsis,r=1,zeta=1,synopsis_service=2ms,broadcast_delay=0",
    "posg:batch=32,mu=0.5,message_service=600us",
    "posg:batch=16,mu=2,resync_windows=2,matrix_delay=0,reply_delay=1ms,message_service=3ms",
    "rivetti_dkg:learning_length=300,relearn_every=90,learner_service=2ms",
    "rivetti_dkg:learning_length=200,relearn_every=10,learner_service=80ms",
]


@pytest.mark.parametrize(
    ("text", "interpreted"),
    [*((text, True) for text in SERVERS), *(pytest.param(text, False, marks=pytest.mark.slow) for text in SERVERS)],
)
def test_the_same_with_control_servers(text: str, interpreted: bool, tmp_path: Path) -> None:
    changes = {"join": ("300", "600"), "leave": ("400:2", "900"), "crash": ("500:0",), "redeliver": True}
    agree(stream("evolving", 1000), options(text, control_delay="3ms", **changes), tmp_path, interpreted)


MODULO = [
    "kg:hash=mod",
    "pkg:hash=mod",
    "salted:hash=mod",
    "greedy_d:hash=mod,d=4",
    "greedy_d:hash=mod,scope=head,d=3",
    "greedy_d:hash=mod,scope=head,d=6",
    "w_choices:hash=mod",
    "greedy_freq:hash=mod,theta=2/n",
    "d_choices:hash=mod,recompute_every=100",
    "fish:hash=mod,ring=false,interval=5ms,d_min=3",
    "dstream:hash=mod,r=1,zeta=1",
    "dynamic_kg:hash=mod,warmup=1ms,teenage_period=3ms,old_period=12ms,check_interval=1ms",
    "rivetti_dkg:hash=mod,learning_length=300",
]


@pytest.mark.parametrize(
    ("text", "interpreted"),
    [*((text, True) for text in MODULO), *(pytest.param(text, False, marks=pytest.mark.slow) for text in MODULO)],
)
def test_the_same_with_places_by_remainder(text: str, interpreted: bool, tmp_path: Path) -> None:
    given = options(text, join=("300",), leave=("200:2", "500"))
    agree(stream("evolving", 700), given, tmp_path, interpreted)


FIRST = [f"{name}:{texts[0]}" if texts[0] else name for name, texts in VARIANTS.items()]
CRASHES = {"crash": ("150:2", "300", "450:0"), "redeliver": True, "join": ("350",)}


# A worker that a tuple is lost on its way to would seem to be behind for ever.
EXACT = {"posg", "consistent_grouping", "load_aware"}


@pytest.mark.parametrize("text", FIRST)
def test_the_same_when_full_queues_block_and_what_a_crash_loses_comes_again(text: str, tmp_path: Path) -> None:
    full = {"queue_capacity": 3, "when_full": "block", **CRASHES}
    given = options(text, control_delay="3ms", network_delay="200us", **full)
    agree(stream("evolving", 600), given, tmp_path, interpreted=True)


@pytest.mark.parametrize("text", [text for text in FIRST if text.partition(":")[0] not in EXACT])
def test_the_same_when_full_queues_drop(text: str, tmp_path: Path) -> None:
    full = {"queue_capacity": 3, "when_full": "drop", **CRASHES}
    given = options(text, control_delay="3ms", network_delay="200us", **full)
    agree(stream("evolving", 600), given, tmp_path, interpreted=True)


@pytest.mark.parametrize("text", FIRST)
def test_the_same_through_many_changes_of_workers(text: str, tmp_path: Path) -> None:
    """Thirty changes, a join and a leave in turn: who leaves is the newest or one by chance."""
    places = range(20, 620, 20)
    leavers = ["", ":random", ":random", ":random", ""]
    changes = {
        "join": tuple(str(at) for at in places[::2]),
        "leave": tuple(f"{at}{leavers[place % 5]}" for place, at in enumerate(places[1::2])),
    }
    given = options(text, workers=6, control_delay="2ms", network_delay="200us", **changes)
    agree(stream("evolving", 700), given, tmp_path, interpreted=True)


def test_storm_starts_over_when_all_workers_with_weight_leave(tmp_path: Path) -> None:
    """Workers 1 and 2 are so slow that their weights are 0 when worker 0 leaves."""
    slow = {"workers": 3, "sources": 1, "service": "20us", "slowdown": "1,100,100", "leave": ("80%:0",)}
    given = options("load_aware:rule=storm,queue=20,report=500us,refresh=500us", **slow)
    agree(stream("random", 150), given, tmp_path, interpreted=True)


@pytest.mark.parametrize("name", ["cm", "cam", "dagreedy", "dalton"])
def test_the_same_when_windows_forget_keys_to_make_room(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    """A window of a single slide: a key that is hot in the next one is in no window, but is not forgotten."""
    monkeypatch.setattr("streamgroup.kernels.counts.sent_in_sliding_window._RECORDS", 32)
    changes = {"join": ("300",), "leave": ("200:2",)}
    given = options(f"{name}:window=2ms,slide=2ms" + (",theta=0.1" if name[0] == "d" else ""), **changes)
    agree(stream("random", 500), given, tmp_path, interpreted=True)


def test_a_key_notes_no_width_above_the_number_of_live_workers(tmp_path: Path) -> None:
    """d_min is 8 for 16 workers when 12 leave; the key that gets 4 of 4 then has no more when they are back."""
    times = range(1_600_000_000_000_000, 1_600_000_000_060_000, 100)
    tuples = [(at, b"b" if place % 20 == 7 else b"a", None) for place, at in enumerate(times)]
    changes = {"leave": tuple(map(str, range(310, 322))), "join": tuple(map(str, range(410, 422)))}
    given = options("fish:d_min=avg,epoch=100,theta=0.01,interval=5ms", workers=16, sources=1, **changes)
    agree(tuples, given, tmp_path, interpreted=True)
