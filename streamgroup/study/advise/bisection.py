"""Finds the smallest sufficient number of workers, by doubling and bisection."""

from collections.abc import Callable, Generator, Mapping
from typing import Any

__all__ = ["MOST", "Search", "least_enough", "together"]

# No more workers are tried.
MOST = 4096

Search = Generator[int, bool, int | None]


def least_enough(asked: int, *, enough: bool, least: int) -> Search:
    """Search from a number that was tried: `enough` says whether it was; fewer than `least` (1 or more) never are.

    Yields a number to try and is sent whether it is enough; returns the least that was, None if none up to MOST was.
    As if more workers were never worse: where they sometimes are, what is found is enough, and one less is not, but far
    fewer might be.
    """
    low, high = (least - 1, asked) if enough else (max(asked, least - 1), None)
    while high is None:
        if low >= MOST:
            return None
        next_one = min(max(2 * low, 1), MOST)
        if (yield next_one):
            high = next_one
        else:
            low = next_one
    while high - low > 1:
        middle = (low + high) // 2
        if (yield middle):
            high = middle
        else:
            low = middle
    return high


def together(
    searches: Mapping[str, Search], tries: Callable[[dict[str, int]], Mapping[str, bool]]
) -> dict[str, int | None]:
    """Run searches side by side: `tries` gets the numbers that are wanted by name, and returns which are enough."""
    found: dict[str, int | None] = {}
    wanted: dict[str, int] = {}
    answers: Mapping[str, Any] = dict.fromkeys(searches)
    while answers:
        for name, answer in answers.items():
            try:
                wanted[name] = searches[name].send(answer)
            except StopIteration as end:
                found[name] = end.value
                wanted.pop(name, None)
        answers = tries(dict(wanted)) if wanted else {}
    return {name: found[name] for name in searches}
