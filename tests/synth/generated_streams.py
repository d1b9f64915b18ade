"""Streams of generators for their tests, and what they are compared with."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base import modules_by_name
from streamgroup.synth.generate_trace import parameters
from streamgroup.synth.generators.protocol import Chunk, Stream

__all__ = ["MOST", "SMALL", "example", "fits", "labels", "make", "whole"]

EXAMPLES = {each["id"]: each for each in json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())}
# The largest number of tuples that a chunk may have.
MOST = 1 << 20

# Parameters of small streams of each generator.
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


def example(name: str) -> tuple[Any, Any]:
    return EXAMPLES[name]["input"], EXAMPLES[name]["expected"]


def make(name: str, **given: Any) -> tuple[Any, Stream]:
    params: Any = parameters(name, given)
    return params, modules_by_name.load(modules_by_name.GENERATORS, name, "generator").generate(params)


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
