"""How those who wait are told how far a run is."""

from typing import Protocol

__all__ = ["Progress", "Silent"]


class Progress(Protocol):
    """Whoever wants to know how far a run is: steps one after the other, each of a number of tasks."""

    def start(self, total: int | None, text: str) -> None:
        """Begin a step of `total` tasks (None: nobody knows); it ends where the next one begins."""

    def advance(self, done: int) -> None:
        """Count `done` more tasks as finished."""


class Silent:
    """Progress that nobody looks at."""

    def start(self, total: int | None, text: str) -> None:
        """Begin a step."""

    def advance(self, done: int) -> None:
        """Count tasks."""
