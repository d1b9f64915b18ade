"""Shared by groupings that follow an engine's rule whose result depends on who joined and left before."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings.protocol import Context, Destinations, GroupingParams, Parts, WorkersChange

__all__ = ["Followed", "FollowedRule", "evenness", "start"]

I64 = NDArray[np.int64]


class FollowedRule(GroupingParams):
    """Parameters of an engine's rule that gives shares of the keys to workers, and the rule itself.

    `holding` is what the rule remembers of who has what, in whatever shape it likes; workers are given by their ids.
    """

    # All of them are the same compiled code.
    compiled_as: ClassVar[str | None] = "followed"

    def seeds_used(self) -> tuple[str, ...]:
        """The engine's own hash takes no seed."""
        return ()

    def choices_per_key(self, workers: int) -> int:
        """A key has one worker."""
        return 1

    def begin(self, live: I64) -> I64:
        """Return what the first workers hold, by their ids, ascending."""
        raise NotImplementedError

    def follow(self, holding: I64, change: WorkersChange) -> I64:
        """Return what workers hold after a change."""
        raise NotImplementedError

    def workers_of(self, keys: Keys, holding: I64) -> I64:
        """Return int64[K]: the id of each key's worker.

        DataError for keys that the engine throws on, UsageError for a type of keys or parameters that it does not take.
        """
        raise NotImplementedError

    def check_keys(self, keys: Callable[[], Keys], workers: int) -> None:
        """Apply the rule to every key."""
        self.workers_of(keys(), self.begin(np.arange(workers)))

    def destinations(self, context: Context) -> Destinations:
        """It is the worker whose share the key is in, as the shares are at the start."""
        return Destinations(_workers(self, context, self.begin(context.live))[:, np.newaxis])


class Followed(NamedTuple):
    """The worker of each key, as the engine's rule gives it for what the workers hold.

    A change of workers is one to the engine's own list of them: what they hold now follows from what they held before.
    """

    worker_of: NDArray[np.uint16]
    holding: I64
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Look the key's worker up."""
        return self.worker_of[key]

    def workers_changed(self, change: WorkersChange, context: Context) -> "Followed":
        """Let the rule follow the change."""
        rule = context.params
        assert isinstance(rule, FollowedRule)
        holding = rule.follow(self.holding, change)
        return self._replace(worker_of=_workers(rule, context, holding), holding=holding)


def _workers(rule: FollowedRule, context: Context, holding: I64) -> NDArray[np.uint16]:
    return rule.workers_of(context.typed_keys(context.key_type), holding).astype(np.uint16)


def start(params: FollowedRule, context: Context) -> Followed:
    """Apply the rule to every key."""
    holding = params.begin(context.live)
    return Followed(_workers(params, context, holding), holding, state_entries=0, state_entry_bytes=8)


def evenness(parts: Parts) -> dict[str, int | float]:
    """Return how even parts of workers are before any key comes: the fewest, the most, the most over the mean."""
    what, shares = parts.name.replace(" ", "_"), parts.of_worker
    return {
        f"{what}_per_worker_min": int(shares.min()),
        f"{what}_per_worker_max": int(shares.max()),
        "structural_peak_to_mean": float(shares.max() * len(shares) / shares.sum()),
    }
