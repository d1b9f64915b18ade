"""Zipf traces: the law, the ids, exact times, the same bytes every time."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.kernels.random_draws import uniform
from streamgroup.synth.generate_trace import synthesise
from streamgroup.synth.generators.zipf import Params, generate
from streamgroup.synth.inverse_sampling import invert_cdf
from streamgroup.synth.zipf_ranks import cumulative_distribution
from streamgroup.traces.checks.validate import validate
from streamgroup.traces.statistics.describe import describe
from streamgroup.traces.trace import open_trace


def _naive_ranks(keys: int, exponent: float, seed: int, tuples: int) -> list[int]:
    weights = [float(i) ** -exponent for i in range(1, keys + 1)]
    cdf, total = [], 0.0
    for weight in weights:
        total += weight
        cdf.append(total)
    cdf = [value / total for value in cdf]
    drawn = uniform(seed, "zipf", np.arange(tuples)).tolist()
    return [next(i for i, value in enumerate(cdf) if value > u) for u in drawn]


def test_a_trace_against_the_slow_definition(tmp_path: Path) -> None:
    given = {"tuples": 3000, "keys": 40, "exponent": 1.1, "rate": "7.5", "start": "2020-01-01", "seed": 5}
    synthesise("zipf", given, tmp_path / "z.trace")
    assert validate(tmp_path / "z.trace") == []
    trace = open_trace(tmp_path / "z.trace")
    (batch,) = trace.batches()
    assert batch.timestamp is not None
    assert batch.key_id is not None
    start = 1_577_836_800_000_000
    assert batch.timestamp.tolist() == [start + int(Fraction(i * 10**6) / Fraction("7.5")) for i in range(3000)]
    keys = [f"k{rank}" for rank in _naive_ranks(40, 1.1, 5, 3000)]
    assert [trace.key_texts(range(trace.keys))[i] for i in batch.key_id] == keys
    counts = {key: keys.count(key) for key in keys}
    order = sorted(counts, key=lambda key: (-counts[key], key.encode()))
    assert trace.key_texts(range(trace.keys)) == order
    assert trace.manifest.generator == "zipf"
    assert trace.manifest.seed == 5
    assert trace.manifest.generator_parameters == {
        "tuples": 3000,
        "keys": 40,
        "exponent": 1.1,
        "rate": 7.5,
        "start": start,
    }
    assert trace.manifest.rows_read == trace.manifest.rows_kept == 3000


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.2, 1.6])
def test_the_law_is_recovered(tmp_path: Path, exponent: float) -> None:
    synthesise("zipf", {"tuples": 1_500_000, "keys": 1000, "exponent": exponent, "seed": 1}, tmp_path / "z.trace")
    facts = describe(open_trace(tmp_path / "z.trace"))
    assert facts.zipf_exponent == pytest.approx(exponent, abs=0.02 if exponent else 0.03)
    share = 1 / sum(i**-exponent for i in range(1, 1001))
    assert facts.p1 == pytest.approx(share, rel=0.02 if exponent else 0.15)
    if exponent:
        assert facts.top_keys[0].key == "k0"
        assert facts.drift == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize(("exponent", "p1"), [(1.0, 0.1022), (1.4, 0.3287), (2.0, 0.6080)])
def test_share_of_the_first_key_as_published(exponent: float, p1: float) -> None:
    assert cumulative_distribution(10_000, exponent)[0] == pytest.approx(p1, abs=6e-5)


def test_the_guide_table_gives_what_a_plain_search_gives() -> None:
    for keys, exponent in ((1, 1.0), (3, 0.0), (50_000, 1.2), (200_000, 0.3)):
        cdf = cumulative_distribution(keys, exponent)
        u = np.concatenate([uniform(9, "t", np.arange(20_000)), [0.0, 1 - 2**-53], cdf[:-1][:1000]])
        assert np.array_equal(invert_cdf(cdf)(u), np.searchsorted(cdf, u, side="right"))
        assert cdf[-1] == 1.0


def test_a_chunk_is_the_same_from_any_place() -> None:
    stream = generate(Params(tuples=5000, keys=100, rate="0.000007", seed=3))
    whole = stream.chunk(0, 5000)
    part = stream.chunk(1234, 700)
    assert np.array_equal(whole.timestamp[1234:1934], part.timestamp)
    assert np.array_equal(whole.label[1234:1934], part.label)
    assert int(whole.timestamp[4999]) == int(Fraction(4999 * 10**6) / Fraction("0.000007"))


def test_times_stay_exact_at_the_end_of_a_long_stream() -> None:
    stream = generate(Params(tuples=10**12, keys=2, rate="123456.789012"))
    first = 10**12 - (1 << 20)
    times = stream.chunk(first, 1 << 20).timestamp
    for i in (0, 1, 777_777, (1 << 20) - 1):
        assert int(times[i]) == int(Fraction((first + i) * 10**6) / Fraction("123456.789012"))
    assert (np.diff(times) >= 0).all()


def test_the_same_seed_makes_the_same_bytes_and_another_one_does_not(tmp_path: Path) -> None:
    prints = []
    for place, seed in (("a", 0), ("b", 0), ("c", 1)):
        given = {"tuples": 20_000, "keys": 300, "seed": seed}
        prints.append(synthesise("zipf", given, tmp_path / place / "z.trace").fingerprint)
    assert prints[0] == prints[1] != prints[2]
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(files) == 3
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()


def test_keys_never_drawn_are_not_in_the_dictionary(tmp_path: Path) -> None:
    manifest = synthesise("zipf", {"tuples": 1, "keys": 1000}, tmp_path / "one")
    assert (manifest.tuples, manifest.keys, manifest.p1) == (1, 1, 1.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"exponent": 3.5}, "zipf: exponent: "),
        ({"exponent": -1}, "zipf: exponent: "),
        ({"exponent": float("nan")}, "zipf: exponent: "),
        ({"tuples": 0}, "zipf: tuples: "),
        ({"keys": 0}, "zipf: keys: "),
        ({"rate": 0}, "zipf: rate: "),
        ({"rate": "0.0000001"}, "zipf: rate: "),
        ({"start": "yesterday"}, "zipf: start: "),
        ({"seed": -1}, "zipf: seed: "),
        ({"tuples": 10**12, "rate": "0.000001"}, "zipf: the last tuple's time"),
        ({"exponnent": 1}, "zipf has no parameter 'exponnent'"),
    ],
)
def test_wrong_parameters_are_named(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        synthesise("zipf", given, tmp_path / "z")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_and_an_unknown_generator(tmp_path: Path) -> None:
    synthesise("zipf", {"tuples": 10}, tmp_path / "z")
    with pytest.raises(UsageError, match="exists already"):
        synthesise("zipf", {"tuples": 10}, tmp_path / "z")
    assert synthesise("zipf", {"tuples": 11}, tmp_path / "z", overwrite=True).tuples == 11
    with pytest.raises(UsageError) as caught:
        synthesise("zapf", {}, tmp_path / "y")
    assert caught.value.hint == "did you mean 'zipf'?"


@pytest.mark.parametrize(
    ("start", "expected"),
    [(-5, -5), ("12", 12), ("1970-01-01T00:00:01.5", 1_500_000), ("1970-01-01T01:00:00+01:00", 0)],
)
def test_start_is_a_number_or_a_moment(start: int | str, expected: int) -> None:
    assert Params(start=start).start == expected
