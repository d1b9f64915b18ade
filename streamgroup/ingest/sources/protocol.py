"""The interface of a source of an ingest."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from streamgroup.ingest.pipeline.arrow_blocks import Row
from streamgroup.ingest.runners.protocol import Frame, Runner
from streamgroup.traces.manifest import Input

__all__ = ["Source"]


class Source(ABC):
    """Rows that become tuples. `ordered` says that they have an order, which decides among tuples of one time; `timed`
    that they have times: else the times of tuples are their places in the stream.
    """

    ordered: ClassVar[bool]
    timed: bool = True

    @property
    @abstractmethod
    def tasks(self) -> int:
        """Return the number of tasks that read the source, as far as it is known."""

    @abstractmethod
    def read(self, runner: Runner) -> Frame:
        """Make a kept frame of the blocks of each split, see `pipeline.read_splits.blocks_of`."""

    @abstractmethod
    def origin(self, split: int) -> tuple[int, str]:
        """Return where the rows of a split come from: the number of the input, and its name for people.

        The rows of splits that follow each other and have one origin are counted through.
        """

    @abstractmethod
    def inputs(self, found: list[Row]) -> list[Input]:
        """Describe the inputs for the manifest after they were read; DataError if they changed meanwhile.

        `found` has rows of kind `digest`.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the fields of the manifest on how the source was read: reader, reader_options, key_parts, times."""

    def advise(self, rejected: Counter[str], examples: Mapping[str, str], otherwise: str) -> str:
        """Suggest what to do about rejected rows, counted by reason, each with the text of a row as example."""
        del rejected, examples
        return otherwise
