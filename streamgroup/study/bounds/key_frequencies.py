"""The keys of a stream: counts of a trace, or the law `zipf:z=1,keys=10000,tuples=10000000`."""

import dataclasses
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.storage.storage_path import StoragePath
from streamgroup.replay.scenario.grouping_text import split_text
from streamgroup.synth.params_of_all_generators import Zipf
from streamgroup.synth.zipf_ranks import LARGEST_TABLE, zipf_weights
from streamgroup.traces.trace import Trace, open_trace

__all__ = ["KeyStream", "of_law", "of_trace", "open_stream"]

_LAW = "zipf:"
_FIELDS = ("z", "keys", "tuples")
# Shares of a law as integers: floats hold their sum exactly.
_WHOLE = 1 << 53
_SCIENTIFIC = re.compile(r"\d+(?:\.\d+)?[eE]\+?\d{1,2}")


@dataclass(frozen=True, eq=False)
class KeyStream:
    """A stream as far as its keys go.

    `weight` int64[keys] >= 0 is descending, its sum `total`: the counts of a trace's keys, whose sum is `tuples`, or of
    a law the shares in units of about 2^-53. `law` has its parameters, `trace` is what was opened; one is None.
    """

    name: str
    tuples: int
    weight: NDArray[np.int64]
    total: int
    law: Zipf | None = None
    trace: Trace | None = None

    @property
    def keys(self) -> int:
        """Return the number of keys; of a law those that may come."""
        return len(self.weight)

    @property
    def top(self) -> int:
        """Return the weight of the most frequent key."""
        return int(self.weight[0])

    @property
    def p1(self) -> Fraction:
        """Return the share of the most frequent key."""
        return Fraction(self.top, self.total)

    @property
    def exact(self) -> bool:
        """Return whether counts are known; else their expectations are."""
        return self.law is None

    @property
    def counts(self) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return how often each key comes, of a law on average."""
        if self.exact:
            return self.weight
        counts: NDArray[np.float64] = self.weight * np.float64(self.tuples / self.total)
        return counts

    def hot(self, theta: Fraction) -> int:
        """Return how many keys have at least the share theta (over 0)."""
        least = -(-theta.numerator * self.total // theta.denominator)
        return self.keys - int(np.searchsorted(self.weight[::-1], least, side="left"))

    def above(self, share: Fraction) -> int:
        """Return how many keys have more than a share."""
        most = share.numerator * self.total // share.denominator
        return self.keys - int(np.searchsorted(self.weight[::-1], most, side="right"))

    def share(self, first: int) -> float:
        """Return the share of the `first` most frequent keys together."""
        return int(self.weight[:first].sum()) / self.total

    def measured(self, tuples: int, count: NDArray[np.int64] | None) -> "KeyStream":
        """Return the part that a run measured: so many tuples, with these counts (None: by the same law)."""
        if count is None:
            return dataclasses.replace(self, tuples=tuples)
        return dataclasses.replace(self, tuples=tuples, weight=_descending(count), total=tuples)


def open_stream(text: str | Path | StoragePath) -> KeyStream:
    """Read a law, or open a trace; UsageError and DataError as for a trace that is replayed."""
    if isinstance(text, str) and text.startswith(_LAW):
        return of_law(text)
    return of_trace(open_trace(text))


def of_trace(trace: Trace) -> KeyStream:
    """Count the keys of a trace; DataError for an empty one."""
    if trace.tuples == 0:
        raise DataError(f"{trace.path}: the trace is empty, nothing can be said of it", "ingest more than nothing")
    return KeyStream(trace.name, trace.tuples, _descending(trace.dictionary().count), trace.tuples, trace=trace)


def _descending(count: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.sort(count[count > 0])[::-1]


def of_law(text: str) -> KeyStream:
    """Read `zipf:z=,keys=,tuples=`, with the defaults of the generator; UsageError for what it does not have."""
    _, given = split_text(text, "zipf")
    values: dict[str, str] = {}
    for name, pieces in given:
        if name not in _FIELDS:
            raise UsageError(f"{text!r}: there is no {name!r}", suggest(name, _FIELDS))
        if len(pieces) > 1:
            raise UsageError(f"{text!r}: {name} has several values", "give one")
        values["exponent" if name == "z" else name] = _plain(pieces[0])
    try:
        law = Zipf(**values)  # type: ignore[arg-type]  # pydantic reads texts
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        place = "z" if place == "exponent" else place
        raise UsageError(f"{text!r}: {place + ': ' if place else ''}{reason}") from None
    if law.keys > LARGEST_TABLE:
        raise UsageError(f"{text!r}: {law.keys} keys are more than {LARGEST_TABLE}", "take fewer keys")
    shares = zipf_weights(1, law.keys + 1, law.exponent)
    weight = np.rint(shares * (_WHOLE / shares.sum())).astype(np.int64)
    return KeyStream(text, law.tuples, weight, int(weight.sum()), law=law)


def _plain(number: str) -> str:
    """Write 1e7 as 10000000."""
    if _SCIENTIFIC.fullmatch(number.strip()):
        value = Fraction(number.strip())
        return str(value.numerator) if value.denominator == 1 else number
    return number
