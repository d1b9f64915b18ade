"""Small random replays over all options at once: the command line's texts, and the same for the naive twin."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.naive.groupings.grouping_by_text import make
from tests.naive.groupings.simple_groupings import Grouping, Setting
from tests.naive.option_texts import time_ns
from tests.naive.replay.options import Change, Key, Span, TraceTuple, index_of
from tests.naive.replay.simulate import simulate
from tests.naive.replay.tuple_records import Run

__all__ = ["Scenario", "place", "scenarios", "time_ns"]

GROUPINGS = ["sg", "sg_random", "kg", "pkg", "pkg:d=3", "greedy_d:d=1", "greedy_d:d=4"]
EXCEPTIONS = ["full_knowledge", "full_knowledge:backlog=true"]
SOURCE_SERVICES = [None, None, None, None, "0", "1us", "500ns,3us", "0,4us", "2us:exponential", "1us:lognormal:0.8"]
# What state costs: mostly nothing.
STATE = [*[(None, None)] * 6, ("0.5/2", None), ("0.1/3", "2:3"), ("0.5/9/n", "9/n:2"), (None, "1:1.1")]
KEYS = [b"a", b"b", b"c", b"d", b"", None]


def place(text: str) -> Span:
    """A time, an index or a share."""
    if text.endswith("%"):
        return "share", Fraction(text[:-1]) / 100
    return ("count", int(text)) if text.isdigit() else ("time", time_ns(text))


def source_options(text: str | None) -> dict[str, Any]:
    """What the naive twin calls the time at the sources."""
    if text is None:
        return {}
    times, _, kind = text.partition(":")
    return {
        "source_service_ns": tuple(time_ns(one) for one in times.split(",")),
        "source_distribution": kind or "deterministic",
    }


@dataclass(frozen=True)
class Scenario:
    """Rows of a trace, and options by their names with the command line's texts; None: not given.

    key_cost: rows (key, worker or None, us) of the file that `--key-cost` names, which `write_key_cost` writes.
    """

    tuples: list[TraceTuple]
    options: dict[str, Any]
    key_cost: list[tuple[Key, int | None, float]] | None = None

    def grouping(self) -> Grouping:
        """The naive one, at its start."""
        given = self.options
        network = time_ns(given["network_delay"])
        control = network if given["control_delay"] is None else time_ns(given["control_delay"])
        setting = Setting(
            given["workers"],
            given["sources"],
            given["seed"],
            given["hash_seed"],
            network_delay=network,
            control_delay=control,
            counts=Counter(key for _, key, _ in self.tuples),
        )
        return make(given["grouping"], setting)

    def changes(self) -> tuple[Change, ...]:
        found = []
        for kind in ("join", "leave", "crash"):
            for text in self.options[kind]:
                at, _, worker = text.partition(":")
                found.append(Change(kind, place(at), int(worker) if worker.isdigit() else worker or None))
        return tuple(found)

    def twin_options(self) -> dict[str, Any]:
        """As `tests.naive.replay.options.Options` wants them."""
        given = self.options
        kind, _, value = given["arrivals"].partition("=")
        steps = [text.partition("=") for text in given["slowdown_at"]]
        costs = None
        if self.key_cost is not None:
            costs = {key if worker is None else (key, worker): us for key, worker, us in self.key_cost}
        return {
            "workers": given["workers"],
            "sources": given["sources"],
            "source_assignment": given["source_assignment"],
            "arrivals": (kind, Fraction(value)) if value else (kind,),
            "spread_ties": given["spread_ties"],
            "speedup": Fraction(given["speedup"]),
            "max_pending": given["max_pending"],
            "service_ns": None if given["service"] is None else time_ns(given["service"]),
            "key_cost": costs,
            "service_distribution": given["service_distribution"] or "deterministic",
            "slowdown": given["slowdown"] or "1",
            "slowdown_at": tuple((place(at), factors) for at, _, factors in steps),
            "speed_jitter": given["speed_jitter"],
            "queue_capacity": given["queue_capacity"],
            "when_full": given["when_full"],
            "changes": self.changes(),
            "redeliver": given["redeliver"],
            "network_delay_ns": time_ns(given["network_delay"]),
            "control_delay_ns": None if given["control_delay"] is None else time_ns(given["control_delay"]),
            **source_options(given.get("source_service")),
            "combine": None if given.get("combine") is None else place(given["combine"]),
            "combine_cost": given.get("combine_cost", "max"),
            "warmup": place(given["warmup"]),
            "seed": given["seed"],
            "state_cost": given.get("state_cost"),
            "memory_limit": given.get("memory_limit"),
            "aggregate_every": self.aggregate_every(),
        }

    def run(self, grouping: Any = None) -> Run:
        """Replay it with the naive twin; the grouping it names, unless another is given."""
        return simulate(self.tuples, self.grouping() if grouping is None else grouping, **self.twin_options())

    def baseline(self) -> Run:
        """The same without changes of workers."""
        return simulate(self.tuples, self.grouping(), **{**self.twin_options(), "changes": ()})

    def window(self) -> Span:
        return place(self.options["window"])

    def aggregate_every(self) -> Span | None:
        text = self.options["aggregate_every"]
        return None if text is None else place(text)

    def write_key_cost(self, path: Path) -> Path:
        """As CSV; only for keys that are texts and not empty."""
        assert self.key_cost is not None
        by_worker = self.key_cost[0][1] is not None
        lines = ["key,cost,worker" if by_worker else "key,cost"]
        for key, worker, us in self.key_cost:
            lines.append(f"{(key or b'').decode()},{us!r}" + (f",{worker}" if by_worker else ""))
        path.write_text("\n".join(lines) + "\n")
        return path


def draw_places(draw: st.DrawFn, count: int, span_us: int) -> str:
    """A time within or a little after the stream, an index, or a share that is a tuple of it."""
    kind = draw(st.sampled_from(["time", "index", "share"]))
    if kind == "time":
        at = draw(st.sampled_from(range(span_us + 3)))
        return draw(st.sampled_from([f"{at}us", f"{at * 1000 + 500}ns"]))
    if kind == "share":
        percent = draw(st.sampled_from(["0", "10", "33.3", "50", "75"]))
        if ceil(Fraction(percent) / 100 * count) < count:
            return f"{percent}%"
    return str(draw(st.sampled_from(range(count))))


def draw_membership(draw: st.DrawFn, workers: int, count: int, span_us: int) -> dict[str, Any]:
    """Up to four changes after which, whatever their order, a worker is left, and is there if it is named."""
    found: dict[str, tuple[str, ...]] = {"join": (), "leave": (), "crash": ()}
    named = draw(st.sampled_from([False, False, True]))
    goes = 0
    for _ in range(draw(st.sampled_from([0, 1, 2, 3, 4, 4]))):
        kind = draw(st.sampled_from(["join", "leave", "crash", "crash", "crash"]))
        text = draw_places(draw, count, span_us)
        if kind != "join":
            if goes == workers - 1:
                continue
            # one that is named is the only one that goes: another might be the same
            if named:
                if goes:
                    continue
                text += f":{draw(st.integers(0, workers - 1))}"
            else:
                text += draw(st.sampled_from(["", "", ":random"]))
            goes += 1
        found[kind] = (*found[kind], text)
    return {**found, "redeliver": bool(found["crash"]) and draw(st.booleans())}


def draw_slowdown_at(draw: st.DrawFn, count: int, span_us: int) -> tuple[str, ...]:
    factors = st.sampled_from(["2", "1,3", "0.5,1,1.1", "half:2", "0.333"])
    by_time = draw(st.booleans())
    found = []
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2, 3]))):
        if by_time:
            at = f"{draw(st.integers(0, span_us))}us"
        else:
            at = draw(st.sampled_from([str(draw(st.integers(0, count - 1))), "0%", f"{count // 2}"]))
        found.append(f"{at}={draw(factors)}")
    return tuple(found)


def draw_warmup(draw: st.DrawFn, tuples: list[TraceTuple], plain: bool) -> str:
    """One that leaves a tuple; by time only where arrivals are the trace's own."""
    count = len(tuples)
    span_us = tuples[-1][0] - tuples[0][0]
    if plain and draw(st.booleans()):
        return f"{draw(st.integers(0, span_us))}us"
    text = draw(st.sampled_from(["0", "0", "0", "10%", "50%", str(count // 3), str(count - 1)]))
    return text if index_of(place(text), count) < count else "0"


def draw_stream(draw: st.DrawFn) -> list[TraceTuple]:
    """Few keys, many ties, small costs or none."""
    count = draw(st.integers(1, 8) | st.integers(9, 40) | st.integers(20, 40))
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True))
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 1, 2, 5]), min_size=count, max_size=count))
    costs = draw(
        st.sampled_from([None, None, [0.0], [0.0, 1.0, 3.0], [1.0, 2.0], [0.5, 6.001], [2.5, 10.0], [4.0, 5.0, 20.0]])
    )
    now = draw(st.sampled_from([0, -7, 1_600_000_000_000_000]))
    tuples = []
    for gap in gaps:
        now += gap
        cost = None if costs is None else draw(st.sampled_from(costs))
        tuples.append((now, draw(st.sampled_from(keys)), cost))
    return tuples


def draw_key_cost(draw: st.DrawFn, tuples: list[TraceTuple], workers: int) -> Any:
    """A row for every key, or for every key on every worker there may be; null and empty keys have no row."""
    keys = {key for _, key, _ in tuples}
    if not keys.isdisjoint({None, b""}) or draw(st.sampled_from([True, True, True, False])):
        return None
    costs = st.sampled_from([0.0, 1.0, 2.0, 3.5, 7.125])
    places = draw(st.sampled_from([[None], range(workers)]))
    return [(key, worker, draw(costs)) for key in sorted(keys, key=bytes) for worker in places]


def draw_combiner(draw: st.DrawFn, options: dict[str, Any]) -> dict[str, Any]:
    """A combiner, and options that it can be with."""
    found = {
        "combine": draw(st.sampled_from(["1", "2", "3", "7", "1us", "2500ns", "20us"])),
        "combine_cost": draw(st.sampled_from(["max", "max", "sum", "0.3"])),
        "redeliver": False,
        "warmup": "0",
        "slowdown_at": tuple(text for text in options["slowdown_at"] if "us=" in text),
    }
    closed = options["arrivals"] == "saturate"
    return found | ({"arrivals": "rate=500000", "max_pending": 1000} if closed else {})


@st.composite
def scenarios(draw: st.DrawFn, groupings: list[str] | None = None) -> Scenario:
    """Draw a stream and options; groupings: texts to choose among, by default all that the twin has."""
    tuples = draw_stream(draw)
    count = len(tuples)
    workers, sources = draw(st.integers(1, 5) | st.integers(2, 3)), draw(st.integers(1, 4))
    key_cost = draw_key_cost(draw, tuples, workers + 4)
    service = draw(st.sampled_from([None, None, "1us", "2500ns", "4us", "15us"])) if key_cost is None else None
    # under saturate the length of a run is the work, not the arrivals
    span_us = tuples[-1][0] - tuples[0][0] + draw(st.sampled_from([0, 0, 5, 60]))
    if tuples[0][2] is None and service is None and key_cost is None:
        span_us *= 1000
    free_of_cost = all(cost == 0 for _, _, cost in tuples) and service is None
    kinds = ["trace", "trace", "saturate", "saturate", "rate=500000", "poisson=700000"]
    if not free_of_cost and key_cost is None:
        kinds += ["utilization=0.9", "poisson-utilization=1.5"]
    arrivals = draw(st.sampled_from(kinds))
    by_trace = arrivals == "trace"
    capacity = draw(st.sampled_from([None, None, 1, 1, 2, 3, 4]))
    fullness = ["block"] if arrivals == "saturate" else ["block", "drop"]
    speedup = draw(st.sampled_from(["1", "1", "1", "0.5", "3"])) if by_trace else "1"
    spread_ties = by_trace and draw(st.sampled_from([False, False, True]))
    options = {
        "grouping": draw(st.sampled_from(groupings or [*GROUPINGS, *EXCEPTIONS])),
        "workers": workers,
        "sources": sources,
        "source_assignment": draw(st.sampled_from(["shuffle", "shuffle", "random", "key"])),
        "arrivals": arrivals,
        "spread_ties": spread_ties,
        "speedup": speedup,
        "max_pending": draw(st.integers(1, 4)) if arrivals == "saturate" else 1000,
        "service": service,
        "service_distribution": draw(st.sampled_from([None, None, None, "exponential", "lognormal:0.8"])),
        "slowdown": draw(st.sampled_from([None, None, "1,2", "half:2", "0.5,1,1.1"])),
        "slowdown_at": draw_slowdown_at(draw, count, span_us),
        "speed_jitter": draw(st.sampled_from([None, None, None, "0.2:1", "0.5:7", "0.3:4:equal"])),
        "queue_capacity": capacity,
        "when_full": None if capacity is None else draw(st.sampled_from(fullness)),
        **draw_membership(draw, workers, count, span_us),
        "network_delay": draw(st.sampled_from(["0", "0", "1us", "3us", "500ns"])),
        "source_service": draw(st.sampled_from(SOURCE_SERVICES)),
        "control_delay": draw(st.sampled_from([None, None, "0", "1us", "3us"])),
        "warmup": draw_warmup(draw, tuples, by_trace and speedup == "1" and not spread_ties),
        "window": draw(st.sampled_from(["1%", "30%", "1", "7", "3us", "20us"])),
        "aggregate_every": draw(st.sampled_from([None, None, "25%", "3", "4us"])),
        **dict(zip(("state_cost", "memory_limit"), draw(st.sampled_from(STATE)), strict=True)),
        "seed": draw(st.integers(0, 3)),
        "hash_seed": draw(st.integers(0, 3)),
    }
    if draw(st.sampled_from([False, False, False, True])):
        options |= draw_combiner(draw, options)
    return Scenario(tuples, options, key_cost)
