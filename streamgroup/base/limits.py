"""Limits of a run: the number of workers, and the memory of structures that parameters size; and how many sources."""

from streamgroup.base.errors import UsageError

__all__ = ["DEFAULT_SOURCES", "MOST_CELLS", "MOST_SOURCES", "MOST_WORKERS", "fits"]

# Worker ids are 16 bits wide.
MOST_WORKERS = 1 << 16
MOST_SOURCES = 1 << 16
# The sources of a run for which neither the user nor the grouping says how many.
DEFAULT_SOURCES = 5
# Cells of 8 bytes that one structure may have: 1 GiB.
MOST_CELLS = 1 << 27


def fits(cells: int, limit: int, what: str, hint: str) -> None:
    """Refuse with a UsageError a structure of more than `limit` cells; `hint` names the parameter to lower.

    To be called before anything is allocated: memory that is overcommitted ends a run without a message.
    """
    if cells > limit:
        raise UsageError(f"{what} would take {cells} cells of memory, and at most {limit} are given", hint)
