"""The synthetic streams a second time, tuple by tuple, from their specification."""

import math
from fractions import Fraction
from itertools import accumulate

from tests.naive.kernels.hashes_and_draws import uniform, word

__all__ = [
    "bursty",
    "drift",
    "evolving_zipf",
    "posg",
    "skewed",
    "stand_in_drifting",
    "stand_in_grouped",
    "time_of",
    "uniform_keys",
    "zipf",
    "zipf_by_rejection",
    "zipf_probabilities",
]


def time_of(start: int, rate: Fraction, place: int) -> int:
    """Microseconds of a tuple of a stream with a constant rate."""
    return start + math.floor(place * 1_000_000 / rate)


def zipf_probabilities(keys: int, exponent: float) -> list[float]:
    """p_i proportional to i^-z."""
    weights = [float(i) ** -exponent for i in range(1, keys + 1)]
    whole = math.fsum(weights)
    return [weight / whole for weight in weights]


def _cdf(keys: int, exponent: float) -> list[float]:
    sums = list(accumulate(float(i) ** -exponent for i in range(1, keys + 1)))
    return [value / sums[-1] for value in sums]


def zipf(purpose: str, seed: int, keys: int, exponent: float, tuples: int) -> list[int]:
    """The first rank whose cumulated probability is above the draw."""
    cdf = _cdf(keys, exponent)
    return [next(i for i, value in enumerate(cdf) if value > uniform(seed, purpose, place)) for place in range(tuples)]


def zipf_by_rejection(purpose: str, seed: int, keys: int, exponent: float, tuples: int) -> list[int]:
    """Hormann and Derflinger's algorithm as they print it, without the test that saves work."""

    def area(x: float) -> float:
        return math.log(x) if exponent == 1 else (x ** (1 - exponent) - 1) / (1 - exponent)

    def inverse(a: float) -> float:
        return math.exp(a) if exponent == 1 else (1 + (1 - exponent) * a) ** (1 / (1 - exponent))

    low, high = area(1.5) - 1, area(keys + 0.5)
    ranks = []
    for place in range(tuples):
        attempt = 0
        while True:
            u = uniform(seed, f"{purpose} {attempt}" if attempt else purpose, place)
            a = high + u * (low - high)
            k = min(max(round(inverse(a)), 1), keys)
            if a >= area(k + 0.5) - k**-exponent:
                break
            attempt += 1
        ranks.append(k - 1)
    return ranks


def uniform_keys(seed: int, keys: int, tuples: int) -> list[int]:
    """Every key alike."""
    return [math.floor(Fraction(uniform(seed, "uniform", place)) * keys) for place in range(tuples)]


def drift(seed: int, keys: int, exponent: float, every: int, step: int, tuples: int) -> list[int]:
    """A ranking as a list; at each move its last `step` keys, one after the other, come to its front."""
    ranking = list(range(keys))
    labels = []
    for place, rank in enumerate(zipf("drift", seed, keys, exponent, tuples)):
        if place and place % every == 0:
            for _ in range(step):
                ranking.insert(0, ranking.pop())
        labels.append(ranking[rank])
    return labels


def _by_words(seed: int, purpose: str, items: int) -> list[int]:
    return sorted(range(items), key=lambda item: word(seed, purpose, item))


def evolving_zipf(
    seed: int, keys: int, exponent: float, reading: str, blocks: int, change: Fraction, tuples: int
) -> list[int]:
    """Which stretch a tuple is in, then what that stretch makes of its rank."""
    ranks = zipf("evolving-zipf", seed, keys, exponent, tuples)
    orders: dict[int, list[int]] = {}
    labels = []
    for place, rank in enumerate(ranks):
        block = next(b for b in range(blocks) if place < (b + 1) * tuples // blocks)
        begin, end = block * tuples // blocks, (block + 1) * tuples // blocks
        after = place - begin >= math.floor(change * (end - begin))
        stretch = 2 * block + after
        if stretch not in orders:
            orders[stretch] = {
                "A": list(range(keys)),
                "B": list(reversed(range(keys))) if after else list(range(keys)),
                "C": _by_words(seed, f"evolving-zipf ranks {stretch}", keys) if after else list(range(keys)),
                "D": [(rank + keys // 2) % keys if after else rank for rank in range(keys)],
                "E": _by_words(seed, f"evolving-zipf ranks {stretch}", keys),
            }[reading]
        labels.append(orders[stretch][rank])
    return labels


def bursty(seed: int, length: float, active: int, tuples: int) -> list[int]:
    """Each lane as the list of its tuples' keys, then the lanes in turn."""
    turns = math.ceil(tuples / active)
    lanes: list[list[int]] = []
    key = 0
    for lane in range(active):
        keys: list[int] = []
        for burst in range(turns):
            if len(keys) >= turns:
                break
            u = 1 - uniform(seed, "bursty length", lane * turns + burst)
            lasts = 1 if length == 1 else 1 + math.floor(math.log(u) / math.log1p(-1 / length))
            keys += [key] * min(lasts, turns)
            key += 1
        lanes.append(keys)
    labels = []
    for place in range(tuples):
        turn = place // active
        shift = math.floor(uniform(seed, "bursty turn", turn) * active)
        labels.append(lanes[(place + shift) % active][turn])
    return labels


def skewed(seed: int, keys: int, share: Fraction, half: bool, rest: str, tuples: int) -> list[int]:
    """A coin for the hot key, then one of the rest."""
    labels = []
    for place in range(tuples):
        now = share if not half or 2 * place < tuples else Fraction(0)
        u = Fraction(uniform(seed, "skewed key", place))
        if Fraction(uniform(seed, "skewed hot", place)) < now:
            labels.append(0)
        elif now and rest == "others":
            labels.append(1 + math.floor(u * (keys - 1)))
        else:
            labels.append(math.floor(u * keys))
    return labels


def posg(
    seed: int, keys: int, exponent: float, values: list[Fraction], shares: list[Fraction], tuples: int
) -> tuple[list[int], list[Fraction]]:
    """Labels, and the cost of each in the unit of the values."""
    labels = zipf("posg", seed, keys, exponent, tuples)
    items = _by_words(seed, "posg items", keys)
    cost: dict[int, Fraction] = {}
    for number, item in enumerate(items):
        reached = Fraction(0)
        for value, share in zip(values, shares, strict=True):
            reached += share / sum(shares) * keys
            if number < math.floor(reached + Fraction(1, 2)):
                cost[item] = value
                break
    return labels, [cost[label] for label in labels]


def stand_in_drifting(seed: int, keys: int, exponent: float, moves: int, tuples: int) -> list[int]:
    """Ranks that fall by one in each of moves + 1 equal stretches after the first."""
    labels = []
    for place, rank in enumerate(zipf("stand-in", seed, keys, exponent, tuples)):
        stretch = next(s for s in range(moves + 1) if place < Fraction(tuples * (s + 1), moves + 1))
        labels.append((rank - stretch) % keys)
    return labels


def stand_in_grouped(seed: int, keys: int, exponent: float, tuples: int) -> list[int]:
    """Every key as often as is expected, all its tuples on end."""
    cdf = [0.0, *_cdf(keys, exponent)]
    counts = [round(cdf[rank + 1] * tuples) - round(cdf[rank] * tuples) for rank in range(keys)]
    return [key for key in _by_words(seed, "stand-in order", keys) for _ in range(counts[key])]
