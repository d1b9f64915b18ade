"""State that costs: workers become slower the more keys they hold (docs/cluster.md, State)."""

from fractions import Fraction
from typing import NamedTuple

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_number

__all__ = ["NO_LIMIT", "StateCost", "parse_state_cost"]

NO_LIMIT = 1 << 62
_MOST = 10**9


class StateCost(NamedTuple):
    """A service is 1 + `rate` x entries times as long, and `over` times that where there are more than `limit`."""

    rate: Fraction
    limit: int
    over: Fraction

    def longest_factor(self, keys: int) -> Fraction:
        """Return the factor on a worker that holds `keys` keys."""
        return (1 + self.rate * keys) * (self.over if keys > self.limit else 1)

    def slowdown_sum(self, tuples: int, entries: int, tuples_over: int, entries_over: int) -> Fraction:
        """Return the sum of the factors of tuples that found so many entries, `tuples_over` of them over the limit."""
        below = tuples - tuples_over + self.rate * (entries - entries_over)
        return below + self.over * (tuples_over + self.rate * entries_over)


def parse_state_cost(cost: str | None, limit: str | None, workers: int) -> StateCost | None:
    """Read `BETA/M` and `ENTRIES:FACTOR`; None where neither is given. `M/n` and `ENTRIES/n` are shares of a worker.

    UsageError for what is not written so, or out of range.
    """
    if cost is None and limit is None:
        return None
    rate, most, over = Fraction(0), NO_LIMIT, Fraction(1)
    if cost is not None:
        what = f"--state-cost {cost}"
        hint = "write BETA/M, as in 0.5/10000, or BETA/M/n, as in 0.5/640000/n, where the workers share M"
        beta, slash, entries = (piece.strip() for piece in cost.partition("/"))
        if not slash:
            raise UsageError(f"{what} does not say for how many entries", hint)
        entries, sharing = _shared(entries, workers)
        rate = _within(beta, what, "BETA", 0, hint) * sharing / _whole(entries, what, "M", 1, hint)
    if limit is not None:
        what = f"--memory-limit {limit}"
        hint = "write ENTRIES:FACTOR, as in 50000:3, or ENTRIES/n:FACTOR, where the workers share ENTRIES"
        entries, colon, factor = (piece.strip() for piece in limit.partition(":"))
        if not colon:
            raise UsageError(f"{what} has no factor", hint)
        entries, sharing = _shared(entries, workers)
        most = _whole(entries, what, "ENTRIES", 0, hint) // sharing
        over = _within(factor, what, "FACTOR", 1, hint)
    return StateCost(rate, most, over)


def _shared(text: str, workers: int) -> tuple[str, int]:
    """Take `/n` off a number of entries; return it and by how many workers they are shared."""
    number, slash, name = (piece.strip() for piece in text.rpartition("/"))
    return (number, workers) if slash and name == "n" else (text, 1)


def _within(text: str, what: str, name: str, least: int, hint: str) -> Fraction:
    value = parse_number(text, what)
    if not least <= value <= _MOST:
        raise UsageError(f"{what}: {name} {text} is not between {least} and 1e9", hint)
    return value


def _whole(text: str, what: str, name: str, least: int, hint: str) -> int:
    value = parse_number(text, what)
    if value.denominator != 1 or not least <= value <= 1 << 40:
        raise UsageError(f"{what}: {name} {text} is not a whole number from {least} to 2^40", hint)
    return int(value)
