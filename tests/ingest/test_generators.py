"""All generators: the same as their twins tuple by tuple, the same in pieces, the same bytes for ever, the law."""

import hashlib
import itertools
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streamgroup.base import discover
from streamgroup.base.errors import UsageError
from streamgroup.ingest.generators.protocol import Chunk, Stream
from streamgroup.ingest.generators.stand_in import DATASETS
from streamgroup.ingest.generators.stand_in import Params as StandIn
from streamgroup.ingest.generators.stand_in import law as stand_in_law
from streamgroup.ingest.synthesis import parameters
from streamgroup.ingest.zipf_ranks import by_inversion, by_rejection, fitted_exponent, zipf_ranks, zipf_sum
from tests.naive import streams

GENERATORS = discover.names("streamgroup.ingest.generators")
EXAMPLES = {each["id"]: each for each in json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())}
# The largest number of tuples that a chunk may have.
MOST = 1 << 20

SMALL: dict[str, list[dict[str, Any]]] = {
    "zipf": [{"tuples": 900, "keys": 40, "exponent": 1.1, "seed": 3}],
    "uniform": [{"tuples": 900, "keys": 7, "seed": 3}, {"tuples": 900, "keys": 10**8}],
    "drift": [
        {"tuples": 900, "keys": 30, "exponent": 1.4, "every": 50, "step": 4, "seed": 2},
        {"tuples": 300, "keys": 5, "exponent": 2, "every": 1, "step": 13},
        {"tuples": 300, "keys": 5, "every": 7, "step": 0},
    ],
    "evolving_zipf": [
        {"tuples": 901, "keys": 31, "exponent": 1.3, "reading": letter, "blocks": blocks, "seed": 5}
        for letter in "ABCDE"
        for blocks in (None, 3)
    ]
    + [{"tuples": 20, "keys": 9, "reading": "c", "blocks": 30, "change": "0.35"}],
    "bursty": [
        {"tuples": 900, "length": 12.5, "seed": 4},
        {"tuples": 901, "length": 9, "active": 4, "seed": 4},
        {"tuples": 50, "length": 1},
        {"tuples": 50, "length": 3, "active": 64},
    ],
    "skewed": [
        {"tuples": 900, "share": "68%", "seed": 1},
        {"tuples": 901, "share": "0.8", "half": True, "seed": 1},
        {"tuples": 400, "share": 0},
        {"tuples": 400, "share": 1},
        {"tuples": 901, "share": "0.333", "half": "true", "rest": "all"},
    ],
    "posg": [
        {"tuples": 900, "keys": 100, "w_n": 8, "seed": 6},
        {"tuples": 900, "keys": 101, "w_n": 7, "association": "binomial", "probability": "0.3", "exponent": 0},
        {"tuples": 900, "keys": 100, "w_n": 5, "association": "geometric", "rate": "12.5"},
        {"tuples": 900, "keys": 100, "values": "25, 5,1", "shares": "1,2,7", "seed": 6},
    ],
    "stand_in": [
        {"dataset": "CT", "scale": "0.01", "p1": "0.06", "seed": 8},
        {"dataset": "am", "scale": "0.0001", "seed": 8},
        {"dataset": "mentions", "scale": "0.002", "seed": 8},
    ],
}
CASES = [(name, given) for name in GENERATORS for given in SMALL[name]]
IDS = [f"{name}-{number}" for name in GENERATORS for number in range(len(SMALL[name]))]

Twin = Callable[[Any], list[int]]


def _stand_in(params: Any) -> list[int]:
    tuples, keys, exponent, order = stand_in_law(params)
    if order == "grouped":
        return streams.stand_in_grouped(params.seed, keys, exponent, tuples)
    if order == "drifting":
        return streams.stand_in_drifting(params.seed, keys, exponent, params.moves, tuples)
    return streams.zipf("stand-in", params.seed, keys, exponent, tuples)


TWINS: dict[str, Twin] = {
    "zipf": lambda p: streams.zipf("zipf", p.seed, p.keys, p.exponent, p.tuples),
    "uniform": lambda p: streams.uniform_keys(p.seed, p.keys, p.tuples),
    "drift": lambda p: streams.drift(p.seed, p.keys, p.exponent, p.every, p.step, p.tuples),
    "evolving_zipf": lambda p: streams.evolving_zipf(
        p.seed,
        p.keys,
        p.exponent,
        p.reading,
        p.blocks or (10 if p.reading == "E" else 1),
        Fraction(p.change),
        p.tuples,
    ),
    "bursty": lambda p: streams.bursty(p.seed, p.length, p.active, p.tuples),
    "skewed": lambda p: streams.skewed(p.seed, 204, Fraction(p.share), p.half, p.rest, p.tuples),
    "posg": lambda p: streams.zipf("posg", p.seed, p.keys, p.exponent, p.tuples),
    "stand_in": _stand_in,
}


def example(name: str) -> tuple[Any, Any]:
    return EXAMPLES[name]["input"], EXAMPLES[name]["expected"]


def make(name: str, **given: Any) -> tuple[Any, Stream]:
    params: Any = parameters(name, given)
    return params, discover.load("streamgroup.ingest.generators", name, "generator").generate(params)


def whole(stream: Stream) -> Chunk:
    return stream.chunk(0, stream.tuples)


def labels(name: str, **given: Any) -> NDArray[np.int64]:
    _, stream = make(name, **given)
    pieces = range(0, stream.tuples, MOST)
    return np.concatenate([stream.chunk(at, min(MOST, stream.tuples - at)).label for at in pieces])


def fits(count: Any, share: Any) -> None:
    """Chi-square against exact probabilities, rare ones as one; bounds that chance passes once in a million times."""
    count, expected = np.asarray(count), np.asarray(share) * np.sum(count)
    assert count.shape == expected.shape
    often = expected >= 10
    count = np.append(count[often], count[~often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    some = expected > 0
    assert not count[~some].any()
    distance = ((count[some] - expected[some]) ** 2 / expected[some]).sum()
    freedom = max(some.sum() - 1, 1)
    assert distance < freedom + 6 * np.sqrt(2 * freedom) + 12


@pytest.mark.parametrize(("name", "given"), CASES, ids=IDS)
def test_a_stream_and_its_twin(name: str, given: dict[str, Any]) -> None:
    params, stream = make(name, **given)
    chunk = whole(stream)
    assert chunk.label.tolist() == TWINS[name](params)
    assert chunk.label.dtype == chunk.timestamp.dtype == np.int64
    assert 0 <= chunk.label.min() <= chunk.label.max() < stream.labels
    if name != "posg" or params.rate is not None:
        rate = Fraction(params.rate)
        assert chunk.timestamp.tolist() == [streams.time_of(params.start, rate, i) for i in range(stream.tuples)]
    keys = [stream.key(label) for label in range(min(stream.labels, 300))]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(("name", "given"), CASES, ids=IDS)
def test_pieces_make_the_whole_whatever_was_made_before(name: str, given: dict[str, Any]) -> None:
    _, stream = make(name, **given)
    expected = whole(stream)
    _, again = make(name, **given)
    edges = sorted({0, 1, 2, stream.tuples // 3, stream.tuples // 2, stream.tuples - 1, stream.tuples})
    pieces = {}
    for first, stop in reversed(list(itertools.pairwise(edges))):
        pieces[first] = again.chunk(first, stop - first)
    for column in Chunk._fields:
        made = [getattr(pieces[first], column) for first in edges[:-1]]
        if getattr(expected, column) is None:
            assert made == [None] * len(made)
        else:
            assert np.array_equal(np.concatenate(made), getattr(expected, column))


BIG: dict[str, dict[str, Any]] = {
    "zipf": {"keys": 2 * 10**7},
    "drift": {"step": 99, "every": 3},
    "evolving_zipf": {"reading": "E", "blocks": 1000},
    "bursty": {"length": 10_000},
    "stand_in": {"dataset": "tw"},
}


@pytest.mark.parametrize("name", GENERATORS)
def test_the_end_of_a_billion_tuples_needs_nothing_before_it(name: str) -> None:
    given = BIG.get(name, {}) if name == "stand_in" else {"tuples": 10**9} | BIG.get(name, {})
    _, stream = make(name, **given)
    assert stream.tuples >= 10**9
    tail = stream.chunk(stream.tuples - 1000, 1000)
    assert np.array_equal(stream.chunk(stream.tuples - 7, 7).label, tail.label[-7:])
    assert 0 <= tail.label.min() <= tail.label.max() < stream.labels
    assert (np.diff(tail.timestamp) >= 0).all()


@pytest.mark.parametrize("name", GENERATORS)
def test_another_seed_is_another_stream(name: str) -> None:
    first, second = (labels(name, **(SMALL[name][0] | {"seed": seed})) for seed in (0, 1))
    assert not np.array_equal(first, second)


# Of labels and costs of SMALL's first cases: what changes these makes other traces of the same command.
DIGESTS = {
    "bursty": "ab038f379b11fef4",
    "drift": "10c2be424e8e2ed7",
    "evolving_zipf": "6c48365a4ba01c47",
    "posg": "2867a5f7ab944674",
    "skewed": "02cbbe4d896afdad",
    "stand_in": "dc8c4f0997aac0ca",
    "uniform": "762fa3248ddd63ec",
    "zipf": "9909bb23538335d3",
}


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_command_makes_the_same_stream_for_ever(name: str) -> None:
    digest = hashlib.sha256()
    for given in SMALL[name]:
        chunk = whole(make(name, **given)[1])
        digest.update(chunk.timestamp.astype("<i8").tobytes() + chunk.label.astype("<i8").tobytes())
        if chunk.cost is not None:
            digest.update(chunk.cost.astype("<f4").tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[name]


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.0001, 1.7, 3.0])
def test_rejection_draws_what_its_twin_draws_and_follows_the_law(exponent: float) -> None:
    draw = by_rejection(500, exponent)
    ranks = draw(9, "t", np.arange(300_000))
    assert ranks[:2000].tolist() == streams.zipf_by_rejection("t", 9, 500, exponent, 2000)
    fits(np.bincount(ranks, minlength=500), streams.zipf_probabilities(500, exponent))
    backwards = draw(9, "t", np.arange(300_000)[::-1])
    assert np.array_equal(backwards[::-1], ranks)


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.7, 3.0])
def test_inversion_follows_the_law(exponent: float) -> None:
    ranks = by_inversion(500, exponent)(9, "t", np.arange(300_000))
    fits(np.bincount(ranks, minlength=500), streams.zipf_probabilities(500, exponent))


def test_ten_million_keys_and_more() -> None:
    place = np.arange(200_000)
    for keys in (10**7, 10**7 + 1, 10**8):
        ranks = zipf_ranks(keys, 1.05)(0, "t", place)
        near = np.append(np.bincount(ranks, minlength=50)[:50], (ranks >= 50).sum())
        first = [i**-1.05 / zipf_sum(keys, 1.05) for i in range(1, 51)]
        fits(near, [*first, 1 - sum(first)])
        assert ranks.max() < keys


@pytest.mark.parametrize("keys", [1, 2, 999, 1000, 1001, 1500, 40_000])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.0000001, 2.5])
def test_the_sum_of_the_weights(keys: int, exponent: float) -> None:
    assert zipf_sum(keys, exponent) == pytest.approx(sum(i**-exponent for i in range(keys, 0, -1)), rel=1e-12)


def test_uniform_keys_are_alike() -> None:
    fits(np.bincount(labels("uniform", tuples=300_000, keys=321), minlength=321), np.full(321, 1 / 321))


def test_drift_in_each_stretch_and_in_all() -> None:
    law = np.array(streams.zipf_probabilities(50, 1.2))
    found = labels("drift", tuples=500_000, keys=50, every=100_000, step=20)
    for stretch in range(5):
        count = np.bincount(found[stretch * 100_000 : (stretch + 1) * 100_000], minlength=50)
        fits(count, np.roll(law, -20 * stretch))
        # What was coldest is hottest: keys 30, ..., 49 pass the others.
        assert count.argmax() == -20 * stretch % 50


@pytest.mark.parametrize(
    ("reading", "one", "other"),
    [("A", 0, 0), ("B", 0, 99), ("D", 0, 50), ("C", 0, None), ("E", None, None)],
)
def test_what_changes_in_an_evolving_stream(reading: str, one: int | None, other: int | None) -> None:
    law = sorted(streams.zipf_probabilities(100, 1.0))
    found = labels("evolving_zipf", tuples=500_000, keys=100, reading=reading, blocks=1)
    before, after = (np.bincount(part, minlength=100) for part in (found[:400_000], found[400_000:]))
    for count, hottest in ((before, one), (after, other)):
        fits(np.sort(count), law)
        if hottest is not None:
            assert count.argmax() == hottest
    if one is None or other is None:
        assert before.argmax() != after.argmax()


@pytest.mark.parametrize(
    ("reading", "measured"),
    [("A", (15.7, 70.6)), ("B", (16.0, 80.1)), ("C", (15.8, 76.3)), ("E", (16.0, 98.8))],
)
def test_replicas_of_shuffle_grouping_that_the_readings_lead_to(reading: str, measured: tuple[float, float]) -> None:
    """The memory of SG at z = 1.0, 50M tuples, 10^5 keys and 16 or 128 workers: it tells the readings apart."""
    params: Any = parameters("evolving_zipf", {"tuples": 500_000, "keys": 100_000, "reading": reading, "exponent": 1})
    order = discover.load("streamgroup.ingest.generators", "evolving_zipf", "generator")._order(params)
    law = np.array(streams.zipf_probabilities(100_000, 1.0))
    blocks = 10 if reading == "E" else 1
    often = np.zeros(100_000)
    for stretch in range(2 * blocks):
        often[order(stretch, np.arange(100_000))] += 5e7 / blocks * (0.2 if stretch % 2 else 0.8) * law
    for workers, expected in zip((16, 128), measured, strict=True):
        replicas = (workers * (1 - (1 - 1 / workers) ** often)).sum() / 100_000
        assert replicas == pytest.approx(expected, abs=0.15)


def test_bursts_are_geometric_and_each_key_has_one() -> None:
    found = labels("bursty", tuples=600_000, length=6)
    starts = np.flatnonzero(np.diff(found)) + 1
    assert np.array_equal(found[np.append(0, starts)], np.arange(len(starts) + 1))
    length = np.diff(np.append(0, starts))
    law = [(1 - 1 / 6) ** (lasts - 1) / 6 for lasts in range(1, length.max() + 1)]
    fits(np.bincount(length)[1:], [*law[:-1], 1 - sum(law[:-1])])


def test_active_keys_take_turns_in_any_order() -> None:
    found = labels("bursty", tuples=8 * 20_000, length=50, active=8)
    turns = np.sort(found.reshape(-1, 8), axis=1)
    assert (np.diff(turns, axis=1) > 0).all()
    # A key's turns are on end: nothing comes between its first and its last.
    for key in (0, 7, 1000):
        at = np.flatnonzero((turns == key).any(axis=1))
        assert np.array_equal(at, np.arange(at[0], at[-1] + 1))
    # Each of five sources that take tuples in turn sees all active keys.
    assert len(set(found[0:200:5].tolist())) >= 8


@pytest.mark.parametrize("rest", ["others", "all"])
@pytest.mark.parametrize("share", ["0", "0.1", "68%", "100%"])
def test_the_hot_country_and_the_others(share: str, rest: str) -> None:
    params, stream = make("skewed", tuples=300_000, share=share, rest=rest)
    count = np.bincount(whole(stream).label, minlength=204)
    hot = float(params.share)
    left = 1 - hot
    others = 204 if rest == "all" or not hot else 203
    fits(count, [1 - 203 * left / others] + [left / others] * 203)
    names = {stream.key(label).decode() for label in range(204)}
    assert len(names) == 204
    assert stream.key(0) == b"Turkey"
    assert names >= {"Brazil", "France", "Japan", "Kenya", "Greenland"}


def test_half_skewed_is_forty_of_eighty() -> None:
    found = labels("skewed", tuples=400_000, share="80%", half=True)
    fits(np.bincount(found[:200_000], minlength=204), [0.8] + [0.2 / 203] * 203)
    fits(np.bincount(found[200_000:], minlength=204), [1 / 204] * 204)
    assert (found == 0).mean() == pytest.approx(0.4, abs=0.01)


def _cost_by_item(**given: Any) -> NDArray[np.float32]:
    _, stream = make("posg", **({"exponent": 0, "tuples": 40 * given.get("keys", 4096)} | given))
    chunk = whole(stream)
    assert chunk.cost is not None
    assert chunk.cost.dtype == np.float32
    cost = np.full(stream.labels, -1, np.float32)
    cost[chunk.label] = chunk.cost
    assert np.array_equal(cost[chunk.label], chunk.cost)
    assert (cost >= 0).all()
    return cost


def _counts(cost: NDArray[np.float32]) -> dict[float, int]:
    return dict(zip(*(each.tolist() for each in np.unique(cost, return_counts=True)), strict=True))


def test_execution_times_of_the_paper() -> None:
    params, _ = make("posg")
    assert (params.tuples, params.keys, params.exponent) == (32_768, 4_096, 1.0)
    cost = _cost_by_item(seed=3)
    # Each of 1, ..., 64 ms for 64 of the 4096 items.
    assert _counts(cost) == {1000.0 * ms: 64 for ms in range(1, 65)}
    assert not np.array_equal(cost, _cost_by_item(seed=4))
    # Costs do not go with frequencies.
    assert abs(np.corrcoef(cost, np.arange(4096))[0, 1]) < 0.1


def test_execution_times_by_equal_ratios_and_one_alone() -> None:
    cost = _counts(_cost_by_item(keys=70, w_n=7, steps="geometric"))
    assert list(cost) == [1000.0 * 2**j for j in range(7)]
    assert set(cost.values()) == {10}
    assert _counts(_cost_by_item(keys=70, w_n=1, w_min="2.5")) == {2500.0: 70}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # 1/2, 1/4, 1/8, 1/8 of the whole after normalising 8 : 4 : 2 : 1 over 150 items.
        ({"association": "geometric"}, [80, 40, 20, 10]),
        # 1 : 3 : 3 : 1 and, at 1/3, 8 : 12 : 6 : 1 of 27.
        ({"association": "binomial"}, [19, 56, 56, 19]),
        ({"association": "binomial", "probability": "0.2"}, [77, 57, 15, 1]),
        ({"shares": "0,30,70,50"}, [0, 30, 70, 50]),
        ({"association": "uniform"}, [38, 37, 38, 37]),
    ],
)
def test_how_many_items_have_each_value(given: dict[str, Any], expected: list[int]) -> None:
    cost = _cost_by_item(keys=150, w_n=4, w_max=4, **given)
    assert [int((cost == 1000.0 * ms).sum()) for ms in range(1, 5)] == expected


@pytest.mark.parametrize("number", [1, 3])
def test_costs_and_their_twin(number: int) -> None:
    given = SMALL["posg"][number]
    params, stream = make("posg", **given)
    if number == 1:
        values = [1 + Fraction(63 * j, 6) for j in range(7)]
        shares = [Fraction(n, 10**6) for n in (117649, 302526, 324135, 185220, 59535, 10206, 729)]
    else:
        values, shares = [Fraction(v) for v in (25, 5, 1)], [Fraction(v) for v in (1, 2, 7)]
    found, cost = streams.posg(params.seed, params.keys, params.exponent, values, shares, params.tuples)
    chunk = whole(stream)
    assert chunk.label.tolist() == found
    assert chunk.cost is not None
    assert chunk.cost.tolist() == [float(np.float32(float(each * 1000))) for each in cost]


def test_mean_execution_time_and_arrivals_of_the_paper() -> None:
    given, expected = example("POSG-10")
    for percentage, milliseconds in expected["inter_arrival_ms"].items():
        asked = {name: given[name] for name in ("w_n", "w_min", "w_max")}
        _, stream = make("posg", exponent=0, instances=given["k"], provisioning=percentage, **asked)
        times = stream.chunk(0, 3000).timestamp
        assert times.tolist() == [int(i * Fraction(str(milliseconds)) * 1000) for i in range(3000)]
    assert _cost_by_item().astype(float).mean() == expected["mean_exec_ms_uniform_items"] * 1000


def test_frequencies_weigh_the_mean_execution_time() -> None:
    _, stream = make("posg", seed=2, exponent=2, keys=64, instances=1, tuples=200_000)
    chunk = whole(stream)
    assert chunk.cost is not None
    cost = np.empty(64)
    cost[chunk.label] = chunk.cost
    mean = (np.array(streams.zipf_probabilities(64, 2.0)) * cost).sum()
    assert chunk.timestamp[-1] / 199_999 == pytest.approx(mean, rel=1e-6)
    assert mean != pytest.approx(32_500, rel=0.01)


@pytest.mark.parametrize(
    ("name", "keys", "share", "exponent"),
    [
        ("wp", 2_900_000, "0.0932", 1.055),
        ("tw", 31_000_000, "0.0267", 0.921),
        ("mentions", 35_000, "0.065", 0.937),
        ("tweets", 5_700_000, None, 1.013),
        ("st", 6_649, None, 1.081),
    ],
)
def test_exponents_of_stand_ins(name: str, keys: int, share: str | None, exponent: float) -> None:
    found = stand_in_law(StandIn(dataset=name))  # type: ignore[arg-type]
    assert (found.tuples, found.keys) == (DATASETS[name].tuples, keys)
    assert found.exponent == pytest.approx(exponent, abs=5e-4)
    if share is not None:
        assert 1 / zipf_sum(keys, found.exponent) == pytest.approx(float(share), rel=1e-5)
    assert DATASETS[name].share == (share or "0.8")


def test_wikipedia_with_fewer_keys_and_cashtags_without_drift() -> None:
    assert fitted_exponent(10_000, 1, 0.0932) == pytest.approx(0.979, abs=5e-4)
    assert stand_in_law(StandIn(dataset="ct", order="mixed")).exponent == pytest.approx(0.719, abs=5e-4)


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({"dataset": "ct"}, 0.0329),
        ({"dataset": "ct", "order": "mixed"}, 0.0329),
        ({"dataset": "mentions"}, 0.065),
        ({"dataset": "wp", "scale": "0.02"}, 0.0932),
        ({"dataset": "am", "scale": "0.05", "p1": "0.01"}, 0.01),
        ({"dataset": "tw", "scale": "0.0005"}, 0.0267),
    ],
)
def test_share_of_the_most_frequent_key(given: dict[str, Any], share: float) -> None:
    found = labels("stand_in", **given)
    assert np.bincount(found).max() / len(found) == pytest.approx(share, rel=0.03)


def test_share_of_the_head() -> None:
    for name, head, keys in (("tweets", 0.03, 5_700), ("st", 0.08, 665)):
        found = stand_in_law(StandIn(dataset=name, scale=Decimal("0.1") if name == "st" else Decimal("0.001")))  # type: ignore[arg-type]
        law = streams.zipf_probabilities(found.keys, found.exponent)
        assert found.keys == keys
        assert sum(law[: round(head * keys)]) == pytest.approx(0.8, abs=1e-5)


def test_a_drifting_stand_in_changes_its_hottest_key() -> None:
    found = labels("stand_in", dataset="ct", moves=4)
    hottest = [int(np.bincount(part).argmax()) for part in np.split(found, 5)]
    assert hottest == [0, 2899, 2898, 2897, 2896]


def test_a_grouped_stand_in_has_each_key_on_end() -> None:
    found = labels("stand_in", dataset="am", scale="0.01")
    runs = found[np.append(0, np.flatnonzero(np.diff(found)) + 1)]
    assert len(set(runs.tolist())) == len(runs)
    law = np.array(streams.zipf_probabilities(2500, 1.0)) * len(found)
    assert np.abs(np.bincount(found, minlength=2500) - law).max() <= 1


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("evolving_zipf", {"reading": "F"}, "reading"),
        ("evolving_zipf", {"change": "1.1"}, "change"),
        ("evolving_zipf", {"blocks": 0}, "blocks"),
        ("drift", {"every": 0}, "every"),
        ("bursty", {"length": 0.5}, "length"),
        ("bursty", {"tuples": 10**12, "length": 2}, "more than 10\\^8 keys"),
        ("skewed", {"share": "101%"}, "share"),
        ("skewed", {"share": "many%"}, "share: 'many%' is not a share such as 0.3 or 30%"),
        ("skewed", {"share": "-1%"}, "share"),
        ("uniform", {"exponent": 1}, "no parameter 'exponent'"),
        ("posg", {"values": ""}, "values"),
        ("posg", {"values": "25,,1"}, "values"),
        ("posg", {"values": "25,-5,1"}, "-5 is not a number from 0"),
        ("posg", {"values": "25,nan"}, "values"),
        ("posg", {"values": "25,0.0000001"}, "at most 6 decimals"),
        ("posg", {"values": "25,5,1", "w_n": 3}, "values and w_n are two ways"),
        ("posg", {"values": "25,5,1", "shares": "1,2"}, "2 for 3 values"),
        ("posg", {"values": "5,1", "shares": "0,0"}, "not all 0"),
        ("posg", {"shares": "1,2", "association": "binomial"}, "two ways"),
        ("posg", {"keys": 10}, "64 values for 10 keys"),
        ("posg", {"w_min": 65}, "w_min 65 is above w_max 64"),
        ("posg", {"probability": 1}, "probability"),
        ("posg", {"tuples": 10**12, "rate": "0.000001"}, "does not fit into 64 bits"),
        ("stand_in", {}, "dataset"),
        ("stand_in", {"dataset": "xx"}, "dataset"),
        ("stand_in", {"dataset": "wp", "scale": 0}, "scale"),
        ("stand_in", {"dataset": "wp", "tuples": 5}, "no parameter 'tuples'"),
    ],
)
def test_wrong_parameters_are_named(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parameters(name, given)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("stand_in", {"dataset": "ct", "moves": 50}, "no exponent from 0 to 3 gives 51 keys of 2900 the share 1.678"),
        ("stand_in", {"dataset": "ct", "scale": "0.001", "order": "mixed"}, "gives a key of 3 the share 0.0329"),
        ("stand_in", {"dataset": "ct", "moves": 5000}, "no exponent"),
        ("stand_in", {"dataset": "tw", "rate": "0.000001"}, "does not fit into 64 bits"),
        ("posg", {"tuples": 10**12, "provisioning": 1_000_000}, "does not fit into 64 bits"),
    ],
)
def test_what_cannot_be_made_is_said(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make(name, **given)


def test_very_slow_arrivals_stay_exact() -> None:
    given = {"w_n": 1, "w_min": "536870912", "w_max": "536870912", "keys": 1, "instances": 7, "tuples": 1 << 20}
    times = make("posg", provisioning="99.9", **given)[1].chunk(0, 1 << 20).timestamp
    interval = Fraction(round(Fraction(536_870_912) * 10**6 * Fraction("0.999") / 7), 1000)
    for i in (0, 1, 777_777, (1 << 20) - 1):
        assert int(times[i]) == int(i * interval)
