"""Storm's partial key grouping: two tasks for each key, each tuple to the one with less, as versions 1 and 2 find them.

0.10.0 to 1.2.4 and 2.0.0 to 2.8.8 (`streamgroup.engines.storm.pkg_tasks`). Each source is an upstream executor: it
counts what it sent itself, and ties go to the first of the two.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.engines.storm import pkg_tasks_all
from streamgroup.groupings.protocol import Context, Destinations, GroupingParams, WorkersChange
from streamgroup.kernels.least_loaded_of_few import send_to_less_loaded

__all__ = ["CITE", "Params", "StormPkg", "start"]

CITE = ("PKG",)

_FEW_BITS = 8


class Params(GroupingParams):
    """Parameters of Storm's partial key grouping."""

    version: Literal["1", "2"] = Field(
        default="2",
        description="1: Storm 0.10.0 to 1.2.4, by two Murmur hashes; 2: 2.0.0 to 2.8.8, by java.util.Random",
    )
    mode: Literal["fields", "first"] = Field(
        default="fields",
        description="fields: partialKeyGrouping(component, Fields); first: new PartialKeyGrouping(), by the key's text",
    )

    def seeds_used(self) -> tuple[str, ...]:
        """The engine's own hash takes no seed."""
        return ()

    def choices_per_key(self, workers: int) -> int:
        """A key has two tasks, where there are as many."""
        return min(2, workers)

    def check_keys(self, keys: Callable[[], Keys], workers: int) -> None:
        """Find the two tasks of every key."""
        pkg_tasks_all(keys(), workers, self.version, self.mode)

    def destinations(self, context: Context) -> Destinations:
        """These are its two tasks; in version 1 they may be the same."""
        return Destinations(_tasks(self, context))

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """Draws by close seeds are close where n is a power of two."""
        if self.version == "1" or workers < _FEW_BITS or workers & (workers - 1):
            return []
        return [
            f"storm_pkg: Storm 2.x draws the two tasks from the top bits of java.util.Random where their number is a "
            f"power of two, here {workers}: keys that are numbered find only some tasks first; another number of tasks "
            "does not have this"
        ]


class StormPkg(NamedTuple):
    """Of the two tasks of a key the one that the source sent less to, ties to the first.

    Counters live as long as the topology: with another number of tasks it is started anew, and all begin at 0.
    """

    tasks: NDArray[np.uint16]
    load: NDArray[np.int64]
    state_entries: int
    state_entry_bytes: int

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the less loaded of the two tasks and count the tuple."""
        return send_to_less_loaded(self.tasks, self.load, source, key)

    def workers_changed(self, change: WorkersChange, context: Context) -> "StormPkg":
        """Start anew with the live workers as tasks."""
        assert isinstance(context.params, Params)
        most = max(self.load.shape[1], int(change.live[-1]) + 1)
        load = np.zeros((context.sources, most), dtype=np.int64)
        return self._replace(tasks=_tasks(context.params, context), load=load, state_entries=context.workers)


def _tasks(params: Params, context: Context) -> NDArray[np.uint16]:
    found = pkg_tasks_all(context.typed_keys(context.key_type), context.workers, params.version, params.mode)
    return context.live.astype(np.uint16)[found]


def start(params: Params, context: Context) -> StormPkg:
    """Find the two tasks of every key."""
    load = np.zeros((context.sources, context.workers), dtype=np.int64)
    return StormPkg(_tasks(params, context), load, state_entries=context.workers, state_entry_bytes=8)
