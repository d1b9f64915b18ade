"""Frames of blocks and their runners: the methods that those on Spark and those in this process have."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import pyarrow as pa

from streamgroup.ingest.pipeline.arrow_blocks import Row, Step

__all__ = ["Frame", "Runner", "T"]

T = TypeVar("T")


class Frame(Protocol):
    """Rows of `BLOCKS` in partitions, computed when they are asked for."""

    def map(self, step: Step) -> "Frame":
        """Run a step on each partition."""
        ...

    def exchange(self, partitions: int) -> "Frame":
        """Send each row to the partition that its `to` numbers."""
        ...

    def of(self, *kinds: str) -> "Frame":
        """Keep the rows of some kinds."""
        ...

    def union(self, other: "Frame") -> "Frame":
        """Put the partitions of another frame after these."""
        ...

    def keep(self) -> "Frame":
        """Compute each partition once and keep it on disk (Spark) or in memory until `Runner.close`."""
        ...

    def stats(self, *kinds: str) -> list[Row]:
        """Collect rows of some kinds; no more of them than the driver can hold."""
        ...


class Runner(Protocol):
    """Runs frames."""

    @property
    def parallelism(self) -> int:
        """Return the number of tasks that run at a time."""
        ...

    def tasks(self, number: int, step: Callable[[int], Iterator[pa.RecordBatch]]) -> Frame:
        """Make a frame of `number` partitions, the blocks of each made from its number."""
        ...

    def run(self, function: Callable[[], T], tasks: int, text: str) -> T:
        """Run a function that computes frames; `tasks` and `text` are for the progress bar."""
        ...

    def close(self) -> None:
        """Drop what frames keep."""
        ...
