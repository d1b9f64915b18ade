"""Stand-in: a Zipf stream with the size and skew that a paper gives for a data set that is not public.

wp, tw, ct: Table I of the D-Choices paper; am, mt: Table 2 of the FISH paper; tweets, st, ha: Table II and Figure 3 of
the DStream paper; mentions: section V-A of the POSG paper. The exponent is solved so that the share of the most
frequent key (or of the most frequent keys, where the paper gives that) is met. At a smaller scale there are fewer keys,
and the exponent is solved for the share that the most frequent key has at full size.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.synth.constant_rate_arrivals import arrival_times
from streamgroup.synth.generators.protocol import Chunk, Stream
from streamgroup.synth.params_of_all_generators import StandIn as Params
from streamgroup.synth.params_of_all_generators import check_times
from streamgroup.synth.random_permutations import shuffled
from streamgroup.synth.zipf_ranks import cumulative_distribution, fitted_exponent, zipf_ranks, zipf_sum

__all__ = ["DATASETS", "Dataset", "Params", "generate", "law"]

I64 = NDArray[np.int64]


class Dataset(NamedTuple):
    """What a paper says of a data set: tuples, keys, and that `head` of the keys (0: one key) have `share` of all.

    Without a share the papers say nothing of the skew: Zipf's own law, exponent 1, is taken.
    """

    tuples: int
    keys: int
    share: str | None = None
    head: str = "0"
    order: str = "mixed"

    @property
    def p1(self) -> str | None:
        """Return the share of the most frequent key, None where the paper does not say it."""
        return self.share if self.head == "0" else None


DATASETS = {
    "wp": Dataset(22_000_000, 2_900_000, "0.0932"),
    "tw": Dataset(1_200_000_000, 31_000_000, "0.0267"),
    "ct": Dataset(690_000, 2_900, "0.0329", order="drifting"),
    "mt": Dataset(49_210_000, 390_000, order="drifting"),
    "am": Dataset(7_910_000, 250_000, order="grouped"),
    "tweets": Dataset(658_000_000, 5_700_000, "0.8", "0.03"),
    "st": Dataset(274_000_000, 6_649, "0.8", "0.08"),
    "ha": Dataset(43_000_000, 3_400_000),
    "mentions": Dataset(500_000, 35_000, "0.065"),
}


class Law(NamedTuple):
    """What a stand-in comes to: tuples, keys, exponent and order."""

    tuples: int
    keys: int
    exponent: float
    order: str


def law(params: Params) -> Law:
    """Return the size and the exponent; UsageError when no exponent from 0 to 3 meets the share."""
    about = DATASETS[params.dataset]
    scale = Fraction(params.scale)
    tuples, keys = (max(int(size * scale + Fraction(1, 2)), 1) for size in (about.tuples, about.keys))
    order = about.order if params.order == "auto" else params.order
    # The most frequent key of the whole stream falls from the first rank to the one after the last move.
    ranks = params.moves + 1 if order == "drifting" else 1
    p1 = about.p1 if params.p1 is None else str(params.p1)
    if p1 is not None:
        return Law(tuples, keys, _exponent(keys, ranks, float(Fraction(p1) * ranks)), order)
    exponent = 1.0
    if about.share is not None:
        head = int(Fraction(about.head) * about.keys + Fraction(1, 2))
        exponent = _exponent(about.keys, head, float(Fraction(about.share)))
    if keys < about.keys:
        exponent = _exponent(keys, ranks, zipf_sum(ranks, exponent) / zipf_sum(about.keys, exponent))
    return Law(tuples, keys, exponent, order)


def _exponent(keys: int, first: int, share: float) -> float:
    """Solve for the exponent at which the `first` most frequent keys have a share."""
    exponent = fitted_exponent(keys, first, share) if first <= keys else None
    if exponent is None:
        raise UsageError(
            f"stand-in: no exponent from 0 to 3 gives {'a key' if first == 1 else f'{first} keys'} of {keys} the share "
            f"{share:.4g}",
            "take a larger scale, fewer moves or another p1",
        )
    return exponent


def generate(params: Params) -> Stream:
    """Make the stream; a label is the key's rank from 0, that at the beginning where the hot set drifts."""
    made = law(params)
    tuples, keys = made.tuples, made.keys
    try:
        check_times(params.start, params.interval, tuples)
    except ValueError as error:
        raise UsageError(f"stand-in: {error}") from None
    label = _grouped(params.seed, made) if made.order == "grouped" else _drawn(params.seed, made, params.moves + 1)

    def chunk(first: int, rows: int) -> Chunk:
        place = np.arange(first, first + rows, dtype=np.int64)
        return Chunk(arrival_times(params.start, params.interval, first, rows), label(place))

    return Stream(tuples, keys, chunk, lambda number: b"k%d" % number)


def _drawn(seed: int, made: Law, segments: int) -> Callable[[I64], I64]:
    """Draw each tuple's key, after s moves of the hot set from ranks s lower."""
    tuples, keys, exponent, order = made
    rank = zipf_ranks(keys, exponent)
    # Stretch s begins at the first tuple that is not before s / stretches of the stream.
    begins = np.array([-(-s * tuples // segments) for s in range(1, segments)], dtype=np.int64)

    def label(place: I64) -> I64:
        drawn = rank(seed, "stand-in", place)
        if order == "drifting":
            drawn = (drawn - np.searchsorted(begins, place, side="right")) % keys
        return drawn

    return label


def _grouped(seed: int, made: Law) -> Callable[[I64], I64]:
    """Make the function from place to key: each key has its expected number of tuples, contiguous, keys shuffled."""
    tuples, keys, exponent, _ = made
    # P(rank <= i) x tuples, rounded: what lies between two of these is the count of a rank.
    ends = np.rint(cumulative_distribution(keys, exponent) * tuples).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    order = shuffled(seed, "stand-in order", keys)
    stops = np.cumsum(counts[order])

    def label(place: I64) -> I64:
        return order[np.searchsorted(stops, place, side="right")]

    return label
