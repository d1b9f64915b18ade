"""All generators: the same as their twins tuple by tuple, the same in pieces, the same bytes for ever, the law."""

import hashlib
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamgroup.base import modules_by_name
from streamgroup.base.errors import UsageError
from streamgroup.synth.generate_trace import parameters
from streamgroup.synth.generators.protocol import Chunk
from streamgroup.synth.generators.stand_in import law as stand_in_law
from tests.naive import synthetic_streams
from tests.synth.generated_streams import SMALL, fits, labels, make, whole

GENERATORS = modules_by_name.names(modules_by_name.GENERATORS)
CASES = [(name, given) for name in GENERATORS for given in SMALL[name]]
IDS = [f"{name}-{number}" for name in GENERATORS for number in range(len(SMALL[name]))]

Twin = Callable[[Any], list[int]]


def _stand_in(params: Any) -> list[int]:
    tuples, keys, exponent, order = stand_in_law(params)
    if order == "grouped":
        return synthetic_streams.stand_in_grouped(params.seed, keys, exponent, tuples)
    if order == "drifting":
        return synthetic_streams.stand_in_drifting(params.seed, keys, exponent, params.moves, tuples)
    return synthetic_streams.zipf("stand-in", params.seed, keys, exponent, tuples)


TWINS: dict[str, Twin] = {
    "zipf": lambda p: synthetic_streams.zipf("zipf", p.seed, p.keys, p.exponent, p.tuples),
    "uniform": lambda p: synthetic_streams.uniform_keys(p.seed, p.keys, p.tuples),
    "drift": lambda p: synthetic_streams.drift(p.seed, p.keys, p.exponent, p.every, p.step, p.tuples),
    "evolving_zipf": lambda p: synthetic_streams.evolving_zipf(
        p.seed,
        p.keys,
        p.exponent,
        p.reading,
        p.blocks or (10 if p.reading == "E" else 1),
        Fraction(p.change),
        p.tuples,
    ),
    "bursty": lambda p: synthetic_streams.bursty(p.seed, p.length, p.active, p.tuples),
    "skewed": lambda p: synthetic_streams.skewed(p.seed, 204, Fraction(p.share), p.half, p.rest, p.tuples),
    "posg": lambda p: synthetic_streams.zipf("posg", p.seed, p.keys, p.exponent, p.tuples),
    "stand_in": _stand_in,
}


@pytest.mark.parametrize(("name", "given"), CASES, ids=IDS)
def test_a_stream_and_its_twin(name: str, given: dict[str, Any]) -> None:
    params, stream = make(name, **given)
    chunk = whole(stream)
    assert chunk.label.tolist() == TWINS[name](params)
    assert chunk.label.dtype == chunk.timestamp.dtype == np.int64
    assert 0 <= chunk.label.min() <= chunk.label.max() < stream.labels
    if name != "posg" or params.rate is not None:
        rate = Fraction(params.rate)
        assert chunk.timestamp.tolist() == [
            synthetic_streams.time_of(params.start, rate, i) for i in range(stream.tuples)
        ]
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
    "stand_in": "abe8f954fe595f9a",
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


def test_uniform_keys_are_alike() -> None:
    fits(np.bincount(labels("uniform", tuples=300_000, keys=321), minlength=321), np.full(321, 1 / 321))


def test_drift_in_each_stretch_and_in_all() -> None:
    law = np.array(synthetic_streams.zipf_probabilities(50, 1.2))
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
    law = sorted(synthetic_streams.zipf_probabilities(100, 1.0))
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
    order = modules_by_name.load(modules_by_name.GENERATORS, "evolving_zipf", "generator")._order(params)
    law = np.array(synthetic_streams.zipf_probabilities(100_000, 1.0))
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


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("evolving_zipf", {"reading": "F"}, "reading"),
        ("evolving_zipf", {"change": "1.1"}, "change"),
        ("evolving_zipf", {"blocks": 0}, "blocks"),
        ("drift", {"every": 0}, "every"),
        ("bursty", {"length": 0.5}, "length"),
        ("bursty", {"tuples": 10**12, "length": 2}, "more than 10\\^8 keys"),
        ("skewed", {"share": "101%"}, "share: '101%' is not a share from 0 to 1 or 0% to 100%"),
        ("skewed", {"share": "many%"}, "share: 'many%' is not a share"),
        ("skewed", {"share": "30"}, "share: '30' is not a share .* such as 0.3 or 30%"),
        ("skewed", {"share": "-1%"}, "share: '-1%' is not a share"),
        ("skewed", {"share": "nan"}, "share: 'nan' is not a share"),
        ("skewed", {"share": 1.5}, "share"),
        ("uniform", {"exponent": 1}, "no parameter 'exponent'"),
        ("posg", {"values": ""}, "values"),
        ("posg", {"values": "25,,1"}, "values"),
        ("posg", {"values": "25,-5,1"}, "-5 is not a number from 0"),
        ("posg", {"values": "25,nan"}, "values"),
        ("posg", {"values": "25,0.0000001"}, "at most 6 decimals"),
        ("posg", {"values": "25,5,1", "w_n": 3}, "--values and --w-n are two ways"),
        ("posg", {"values": "25,5,1", "shares": "1,2"}, "2 for 3 values"),
        ("posg", {"values": "5,1", "shares": "0,0"}, "not all 0"),
        ("posg", {"shares": "1,2", "association": "binomial"}, "--shares and --association"),
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
