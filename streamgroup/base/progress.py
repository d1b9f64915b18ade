"""The interface for reporting progress."""

from typing import Protocol

__all__ = ["Progress", "Silent", "Watcher"]


class Progress(Protocol):
    """Receives the progress of a run: steps one after the other, each of a number of tasks."""

    def start(self, total: int | None, text: str) -> None:
        """Begin a step of `total` tasks (None: not known); it ends where the next one begins."""

    def advance(self, done: int) -> None:
        """Count `done` more tasks as finished."""


class Watcher(Progress, Protocol):
    """Receives the progress of many runs, and notes on how they are run."""

    def describe(self, text: str) -> None:
        """Change the text of the step."""

    def note(self, text: str) -> None:
        """Receive a note, a sentence."""


class Silent:
    """Progress that is not shown."""

    def start(self, total: int | None, text: str) -> None:
        """Begin a step."""

    def advance(self, done: int) -> None:
        """Count tasks."""

    def describe(self, text: str) -> None:
        """Change the text of the step."""

    def note(self, text: str) -> None:
        """Receive a note."""
