"""How fast the workers are: slowdown factors, changes of them, and a slow random drift (SIMULATION: capacity model)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_CELLS
from streamgroup.base.numbers_and_durations import parse_number
from streamgroup.base.time_count_or_share import Position, parse_position
from streamgroup.cluster.service_distribution import log_variance, parse_cv
from streamgroup.kernels import elementary_functions, random_draws

__all__ = [
    "Jitter",
    "Speeds",
    "jitter_factors",
    "make_speeds",
    "parse_jitter",
    "parse_slowdown",
    "repetition",
    "split_change",
]

# Tuples in a batch where speeds do not drift: more than there are.
_NEVER = 1 << 62
# Batches of one worker whose factors are drawn at a time.
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Speeds:
    """The speeds of all workers there will be (N) over the run.

    `initial`: slowdown of each of the n first workers at time 0, exactly. `slowdown` float64[p, N]: its phases, of
    which phase k holds from `begins[k]` on (int64[p], ascending from 0): times of the start of a service if `by_time`,
    else indexes of tuples. `jitter` float64[batches, N]: the drift's factor for tuples in batch i div `every`.
    """

    initial: list[Fraction]
    slowdown: NDArray[np.float64]
    begins: NDArray[np.int64]
    by_time: bool
    jitter: NDArray[np.float64]
    every: int

    @property
    def jittered(self) -> bool:
        """Report whether speeds drift."""
        return self.every != _NEVER

    @property
    def steady(self) -> bool:
        """Report whether no speed ever changes."""
        return len(self.begins) == 1 and not self.jittered

    def longest_factor(self) -> float:
        """Return what a cost is multiplied by at most, on any worker at any time."""
        return float(self.slowdown.max() * self.jitter.max())

    def at(self, time_ns: int, seq: int) -> NDArray[np.float64]:
        """Return the slowdown factors (float64[N], without drift) that are in force at a time and for a tuple."""
        phase = np.searchsorted(self.begins, time_ns if self.by_time else seq, side="right") - 1
        return self.slowdown[phase]


def make_speeds(
    slowdown: str | None,
    changes: Sequence[str],
    jitter: str | None,
    *,
    workers: int,
    joiners: int,
    tuples: int,
    seed: int,
) -> Speeds:
    """Read `--slowdown`, `--slowdown-at` and `--speed-jitter` for `workers` workers and `joiners` that join later.

    Joiners have slowdown 1 throughout, and a drift of their own. UsageError for texts that are wrong.
    """
    first = parse_slowdown("1" if slowdown is None else slowdown, workers)
    phases = {0: first}
    by_time = _read_changes(changes, workers, tuples, phases)
    begins = sorted(phases)
    table = np.ones((len(begins), workers + joiners))
    for row, begin in enumerate(begins):
        table[row, :workers] = [float(factor) for factor in phases[begin]]
    drift, every = np.ones((1, workers + joiners)), _NEVER
    read = None if jitter is None else parse_jitter(jitter)
    if read is not None and read.cv:
        drift, every = jitter_factors(read, seed, workers + joiners, tuples), read.every
    return Speeds(phases[0], table, np.array(begins, dtype=np.int64), by_time, drift, every)


def parse_slowdown(text: str, workers: int, what: str = "--slowdown") -> list[Fraction]:
    """Read `1,1,1,2` (repeated to n workers), or who takes how much longer, the others being as they are.

    `half:2` are the floor(n/2) highest ids, `one:2` the highest, `14:2` worker 14; several have commas between.
    """
    pieces = text.split(",")
    if ":" not in text:
        given = [_factor(piece, what) for piece in pieces]
        return [given[worker % len(given)] for worker in range(workers)]
    factors = [Fraction(1)] * workers
    for piece in pieces:
        who, _, factor = piece.partition(":")
        value = _factor(factor, what)
        for worker in _who(who.strip(), workers, f"{what} {text}"):
            factors[worker] = value
    return factors


def _who(text: str, workers: int, what: str) -> Sequence[int]:
    if text == "half":
        return range(workers - workers // 2, workers)
    if text == "one":
        return [workers - 1]
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(f"{what}: {text!r} is no worker", "write half:2, one:2 (the highest id) or 14:2 (worker 14)")
    if int(text) >= workers:
        raise UsageError(f"{what}: there is no worker {text} among {workers}", f"ids go from 0 to {workers - 1}")
    return [int(text)]


def repetition(text: str, workers: int) -> str | None:
    """Return what a list of factors for fewer than n workers means, in a line; None for any other text."""
    given = text.split(",")
    factors = parse_slowdown(text, workers)
    slow = sum(factor > min(factors) for factor in factors)
    if ":" in text or len(given) >= workers or slow == 0:
        return None
    return f"{text} repeats: {slow} of {workers} workers are slow"


def _factor(text: str, what: str) -> Fraction:
    value = parse_number(text, what)
    if not Fraction(1, 10**6) <= value <= 10**6:
        raise UsageError(
            f"{what}: {text} is not a factor between 0.000001 and 1000000",
            "1 is the normal speed, 2 half of it",
        )
    return value


def split_change(text: str) -> tuple[str, str]:
    """Split `T=FACTORS` of `--slowdown-at`."""
    when, equals, factors = (piece.strip() for piece in text.partition("="))
    if not equals:
        raise UsageError(f"--slowdown-at {text}: no start is given", "write T=FACTORS, as in 50%=1,2 or 10s=half:2")
    return when, factors


def _read_changes(changes: Sequence[str], workers: int, tuples: int, phases: dict[int, list[Fraction]]) -> bool:
    """Add the changes to `phases` by where they begin, a later one of the same place instead of an earlier; by time?"""
    positions: list[Position] = []
    for text in changes:
        when, factors = split_change(text)
        what = f"--slowdown-at {text}"
        position = parse_position(when, what, tuples)
        positions.append(position)
        begin = position.index if position.time_ns is None else position.time_ns
        assert begin is not None
        phases[begin] = parse_slowdown(factors, workers, what)
    by_time = {position.index is None for position in positions}
    if len(by_time) > 1:
        raise UsageError(
            "--slowdown-at: some changes are at a time and some at a tuple, so which comes first is not known",
            "write all as times, as in 10s=2, or all as tuples or shares, as in 50%=2",
        )
    return True in by_time


@dataclass(frozen=True)
class Jitter:
    """A drift with a coefficient of variation `cv` that takes a new value every `every` tuples.

    `settled`: it begins as it is after a long time; otherwise all workers begin near the factor 1.
    """

    cv: Fraction
    every: int
    settled: bool = True


def parse_jitter(text: str) -> Jitter:
    """Read `CV:EVERY` of `--speed-jitter`, as in 0.1:5000; with `:equal` behind it all workers begin alike."""
    cv, _, rest = (piece.strip() for piece in text.partition(":"))
    every, colon, start = (piece.strip() for piece in rest.partition(":"))
    if not re.fullmatch(r"[0-9][0-9_]{0,18}", every) or int(every) == 0:
        raise UsageError(f"--speed-jitter: {text!r} is not CV:EVERY", "write 0.1:5000: a new factor every 5000 tuples")
    if colon and start != "equal":
        raise UsageError(f"--speed-jitter: {text!r}: there is no start {start!r}", "write 0.1:5000 or 0.1:5000:equal")
    return Jitter(parse_cv(cv, "--speed-jitter"), min(int(every), _NEVER - 1), settled=not colon)


def jitter_factors(jitter: Jitter, seed: int, workers: int, tuples: int) -> NDArray[np.float64]:
    """Return each worker's factor in each batch of tuples: float64[batches, workers].

    log factor x_b = 0.9 x_(b-1) + sqrt(0.19) s N_b with s = sqrt(ln(1 + CV^2)), N_b standard normal: a slow drift of
    the speed, as measured on machines that share their hosts (000, fig. 4). x_0 = s N_0 is its stationary distribution,
    so the coefficient of variation is CV in every batch. Unless it is settled, x_0 = sqrt(0.19) s N_0, as after 1.
    """
    batches = -(-tuples // jitter.every)
    if batches * workers > MOST_CELLS:
        raise UsageError(
            f"--speed-jitter: {batches} batches of {jitter.every} tuples for {workers} workers are over "
            f"{8 * batches * workers >> 30} GB",
            "let the speed change less often",
        )
    table = np.empty((batches, workers))
    scale = sqrt(0.19 * log_variance(jitter.cv))
    first = sqrt(log_variance(jitter.cv)) if jitter.settled else scale
    for worker in range(workers):
        for begin in range(0, batches, _AT_ONCE):
            index = np.arange(begin, min(begin + _AT_ONCE, batches), dtype=np.int64)
            table[index, worker] = random_draws.normal(seed, f"jitter:{worker}", index) * np.where(
                index == 0, first, scale
            )
    for batch in range(1, batches):
        table[batch] += 0.9 * table[batch - 1]
    flat = table.reshape(-1)
    for begin in range(0, len(flat), _AT_ONCE):
        flat[begin : begin + _AT_ONCE] = elementary_functions.exp(flat[begin : begin + _AT_ONCE])
    return table
