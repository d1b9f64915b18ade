"""What the groupings by Flink's key groups share."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.engines.flink import LARGEST_PARALLELISM, groups_of_subtasks, resolved_max_parallelism
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._engine_rule_with_membership_history import FollowedRule, evenness
from streamgroup.groupings.protocol import Parts, WorkersChange

__all__ = ["KeyGroupRule"]

I64 = NDArray[np.int64]

# From this share of the mean on, uneven key groups are worth a word.
_UNEVEN = 1.05


class KeyGroupRule(FollowedRule):
    """Parameters of Flink's key groups; what workers hold is how many groups there are, then who is there.

    With more or fewer workers, as when a job is started from a savepoint, the key groups stay and are assigned anew.
    """

    max_parallelism: int = Field(
        default=0, ge=0, le=LARGEST_PARALLELISM, description="number of key groups; 0: as Flink computes it from n"
    )

    def subtask_of(self, keys: Keys, workers: int, max_parallelism: int) -> NDArray[np.uint16]:
        """Return uint16[K]: each key's subtask."""
        raise NotImplementedError

    def begin(self, live: I64) -> I64:
        """Fix the number of key groups."""
        most = resolved_max_parallelism(len(live), self.max_parallelism or None)
        return np.concatenate([[most], live])

    def follow(self, holding: I64, change: WorkersChange) -> I64:
        """Keep the number of key groups."""
        return np.concatenate([holding[:1], change.live])

    def workers_of(self, keys: Keys, holding: I64) -> I64:
        """Return the live worker that stands at the place of the subtask."""
        live = holding[1:]
        return live[self.subtask_of(keys, len(live), int(holding[0]))]

    def parts_by_worker(self, workers: int) -> Parts:
        """Return the key groups of each subtask."""
        return Parts("key groups", groups_of_subtasks(workers, self.max_parallelism or None))

    def facts(self, workers: int) -> dict[str, int | float]:
        """Return how many key groups there are, and how many a worker has."""
        groups = self.parts_by_worker(workers)
        return {"max_parallelism": int(groups.of_worker.sum()), **evenness(groups)}

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """Key groups that do not divide evenly are skew that no key causes."""
        groups = groups_of_subtasks(workers, self.max_parallelism or None)
        total, most = int(groups.sum()), int(groups.max())
        if most * workers <= _UNEVEN * total:
            return []
        return [
            f"{total} key groups for {workers} workers: {int((groups == most).sum())} of them have {most}, the others "
            f"{most - 1}, so that the fullest has {most * workers / total:.3f} times the mean even if all keys are "
            f"equal; a max_parallelism that {workers} divides, as {_divisible(workers, total)}, does not have this"
        ]


def _divisible(workers: int, total: int) -> int:
    """Return the next larger number of key groups that all workers can share evenly, or the largest allowed."""
    return min(-(-total // workers) * workers, LARGEST_PARALLELISM // workers * workers)
