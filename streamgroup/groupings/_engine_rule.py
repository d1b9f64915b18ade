"""Shared by groupings that follow a real engine's rule and send each key to one worker."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings.protocol import Context, Destinations, GroupingParams, WorkersChange

__all__ = ["EngineRule", "OneWorker", "start"]


class EngineRule(GroupingParams):
    """Parameters of an engine's rule, and the rule itself."""

    # All of them are the same compiled code.
    compiled_as: ClassVar[str | None] = "one_worker"

    def seeds_used(self) -> tuple[str, ...]:
        """The engine's own hash takes no seed."""
        return ()

    def choices_per_key(self, workers: int) -> int:
        """A key has one worker."""
        return 1

    def places(self, keys: Keys, workers: int) -> NDArray[np.uint16]:
        """Return uint16[K]: each key's place, 0..workers-1, among so many tasks.

        DataError for keys that the engine throws on, UsageError for parameters that it does not take.
        """
        raise NotImplementedError

    def check_keys(self, keys: Callable[[], Keys], workers: int) -> None:
        """Apply the rule to every key."""
        self.places(keys(), workers)

    def destinations(self, context: Context) -> Destinations:
        """It is the live worker at the place that the rule gives."""
        return Destinations(_workers(self, context)[:, np.newaxis])


class OneWorker(NamedTuple):
    """The worker of each key: the place that the engine's rule gives it, in the list of live workers.

    When workers come and go, the rule is applied anew to as many as there are, as an engine does that is started again
    with another parallelism.
    """

    worker_of: NDArray[np.uint16]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Look the key's worker up."""
        return self.worker_of[key]

    def workers_changed(self, change: WorkersChange, context: Context) -> "OneWorker":
        """Apply the rule to the live workers."""
        assert isinstance(context.params, EngineRule)
        return self._replace(worker_of=_workers(context.params, context))


def _workers(rule: EngineRule, context: Context) -> NDArray[np.uint16]:
    places = rule.places(context.typed_keys(context.key_type), context.workers)
    return context.live.astype(np.uint16)[places]


def start(params: EngineRule, context: Context) -> OneWorker:
    """Apply the rule to every key."""
    return OneWorker(_workers(params, context), state_entries=0, state_entry_bytes=8)
