"""The oracle: each tuple goes to the worker that is done first; `full_knowledge:backlog=true`."""

from streamgroup.groupings import full_knowledge
from streamgroup.groupings.protocol import Context, GroupingParams

__all__ = ["CITE", "Params", "start"]

CITE = ("004",)

_BACKLOG = full_knowledge.Params(backlog=True)


class Params(GroupingParams):
    """The oracle has no parameters."""

    def sees(self) -> tuple[str, ...]:
        """When each worker is done."""
        return _BACKLOG.sees()

    def seeds_used(self) -> tuple[str, ...]:
        """As in Full Knowledge."""
        return _BACKLOG.seeds_used()

    def choices_per_key(self, workers: int) -> int:
        """Any key may go to any worker."""
        return _BACKLOG.choices_per_key(workers)


def start(params: Params, context: Context) -> full_knowledge.FullKnowledge | full_knowledge.ShortestBacklog:
    """Start Full Knowledge with `backlog`."""
    del params
    return full_knowledge.start(_BACKLOG, context)
