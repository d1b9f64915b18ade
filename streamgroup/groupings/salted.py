"""Salted keys: named or the most frequent keys are split by a suffix, the others have one worker by hash."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines.keys.typed_key_arrays import Keys
from streamgroup.groupings._detector_and_loads import ENTRY_BYTES
from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings.protocol import Context, Described, Destinations, WorkersChange
from streamgroup.kernels.compiled_random_draws import draw_below
from streamgroup.kernels.hash_placement import candidates

__all__ = ["Params", "SaltedKeys", "start"]


def _file_named(name: str | None) -> str | None:
    if name == "":
        raise ValueError("it names a file")
    return name


class Params(HashedParams):
    """Parameters of salted keys."""

    file_parameters: ClassVar[tuple[str, ...]] = ("keys",)

    salts: int = Field(
        default=8, ge=1, le=1024, description="salts of each salted key (suffixes it may get); 1 is key grouping"
    )

    keys: Annotated[str | None, AfterValidator(_file_named), Described("a file with a key per line")] = Field(
        default=None, description="file that names the salted keys, one per line; none: the most frequent ones"
    )
    top: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="how many keys are salted if no file names them: the most frequent",
    )

    pick: Literal["round_robin", "random"] = Field(
        default="round_robin", description="salt of a tuple: the next one of its key at its source, or a random one"
    )

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.keys is not None and "top" in self.model_fields_set:
            raise ValueError("keys and top are two ways to say which keys are salted: give one")
        return self

    def check_keys(self, keys: Callable[..., Keys], workers: int) -> None:
        """Refuse a file that names no key of the trace."""
        if self.keys is not None and self.salts > 1:
            _named(self.keys, keys("bytes"))

    def not_alone(self, sources: int) -> str:
        """Which keys are salted is found among all keys of a trace."""
        return "it looks for the keys to salt among all keys of a trace" if self.salts > 1 else ""

    def doubts_of_keys(self, keys: Callable[..., Keys]) -> list[str]:
        """Keys in the file that the trace does not have may be misspelt."""
        if self.keys is None or self.salts == 1:
            return []
        wanted = _wanted(self.keys)
        missing = len(wanted) - len(_found(wanted, keys("bytes")))
        return [f"salted: {missing} of the {len(wanted)} keys in {self.keys} are not in the trace"] if missing else []

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed; salts are drawn with pick=random alone."""
        return ("seed", "hash_seed") if self.pick == "random" else ("hash_seed",)

    def choices_per_key(self, workers: int) -> int | None:
        """A salted key may go to several workers unless it has just one salt."""
        return 1 if self.salts == 1 else None

    def cold_choices(self, workers: int) -> int:
        """A key that is not salted goes to F_1."""
        return 1

    def destinations(self, context: Context) -> Destinations:
        """A key that is not salted goes to F_1; which keys are salted depends on the trace, or on a file."""
        which = f"the keys in {self.keys}" if self.keys else f"the {self.top} most frequent keys of a trace"
        remark = f"tuples of {which} go to F_1 to F_{self.salts}"
        return Destinations(context.candidates(1), remark if self.salts > 1 else "")


class SaltedKeys(NamedTuple):
    """A tuple of a salted key goes to one of F_1..F_r, round robin or at random; any other key goes to F_1.

    What Flink and Spark jobs do against hot keys: append one of r suffixes ("salts") to the key, group by the result,
    and merge the r partial results of a key in a second aggregation. The worker of a key's salt j, from 0, is its
    candidate F_(j+1). The salted keys are named in a file, or the most frequent ones by exact counts of the whole
    trace, ties to the lower id: what a user knows from a recording, not what a source could know.

    `first` uint16[keys] is F_1. `row` int32[keys] is the place of a salted key among `salted` int64[rows], the ids of
    these keys, else -1. `of_salt` uint16[rows, r] are the workers of the salts. With pick=round_robin the next salt is
    `next_salt` int64[sources, rows], which starts at source mod r. With pick=random a source draws its i-th salt at
    place i of its stream: `stream` uint64[sources], `drawn` int64[sources].

    Costs: up to r replicas of a salted key, and a second aggregation. Loads are ignored, and the list of salted keys
    stays as it is when other keys become hot. Salts of a key may share a worker.

    Departures from practice: a job hashes the key with its suffix. Here the candidates take the place of these hashes,
    so that salts=1 is exactly `kg`.
    """

    first: NDArray[np.uint16]
    row: NDArray[np.int32]
    salted: NDArray[np.int64]
    of_salt: NDArray[np.uint16]
    next_salt: NDArray[np.int64]
    stream: NDArray[np.uint64]
    drawn: NDArray[np.int64]
    choices: NDArray[np.int64]
    state_entries: int
    state_entry_bytes: int
    workers: int
    is_random: bool

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the worker of the next or a random salt, or F_1."""
        row = self.row[key]
        if row < 0:
            self.choices[0] = 0
            return self.first[key]
        salts = self.of_salt.shape[1]
        self.choices[0] = min(salts, self.workers)
        if self.is_random:
            salt = draw_below(self.stream[source], self.drawn[source], salts)
            self.drawn[source] += 1
        else:
            salt = self.next_salt[source, row]
            following = salt + 1
            self.next_salt[source, row] = following if following < salts else 0
        return self.of_salt[row, salt]

    def workers_changed(self, change: WorkersChange, context: Context) -> "SaltedKeys":
        """Hash every key and salt anew to the live workers; each source continues with its next salt or draw."""
        return self._replace(
            first=_first_workers(context),
            of_salt=_workers_of_salts(context, self.salted, self.of_salt.shape[1]),
            workers=context.workers,
        )


def _first_workers(context: Context) -> NDArray[np.uint16]:
    return context.candidates(1)[:, 0].copy()


def _workers_of_salts(context: Context, salted: NDArray[np.int64], salts: int) -> NDArray[np.uint16]:
    """Return F_1..F_r of the salted keys alone: a table of all keys could be large."""
    return candidates(
        context.hash_lo[salted], context.hash_hi[salted], salts, context.live, context.hash_seed,
        modulo=context.params.modulo(),
    )  # fmt: skip


def _wanted(name: str) -> set[bytes]:
    """Return the keys that a file names, one per line, without empty lines; UsageError if it cannot be read."""
    try:
        lines = Path(name).read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"salted: keys={name}: {error.strerror}", "name a file with one key per line") from None
    return {line.removesuffix(b"\r") for line in lines} - {b""}


def _found(wanted: set[bytes], keys: Keys) -> NDArray[np.int64]:
    """Return the ids of the keys that are wanted, ascending."""
    found = [key for key in range(keys.count) if key != keys.null and keys.raw(key) in wanted]
    return np.array(found, dtype=np.int64)


def _named(name: str, keys: Keys) -> NDArray[np.int64]:
    """Return the ids of the keys that a file names, ascending; DataError if none of them is in the trace."""
    found = _found(_wanted(name), keys)
    if not found.size:
        raise DataError(f"salted: the trace has none of the keys in {name}", "write one key per line, as in the trace")
    return found


def _salted(params: Params, context: Context) -> NDArray[np.int64]:
    if params.salts == 1:
        # No key is split.
        return np.zeros(0, dtype=np.int64)
    if params.keys is not None:
        return _named(params.keys, context.typed_keys("bytes"))
    assert context.counts is not None
    return np.argsort(-context.counts, kind="stable")[: params.top].astype(np.int64)


def start(params: Params, context: Context) -> SaltedKeys:
    """Find the salted keys and hash them with each salt."""
    salted = _salted(params, context)
    row = np.full(context.keys, -1, dtype=np.int32)
    row[salted] = np.arange(len(salted))
    begin = np.arange(context.sources, dtype=np.int64)[:, np.newaxis] % params.salts
    streams = [context.draw_stream(f"salted:{source}") for source in range(context.sources)]
    return SaltedKeys(
        first=_first_workers(context),
        row=row,
        salted=salted,
        of_salt=_workers_of_salts(context, salted, params.salts),
        next_salt=np.repeat(begin, len(salted), axis=1),
        stream=np.array(streams, dtype=np.uint64),
        drawn=np.zeros(context.sources, dtype=np.int64),
        choices=np.zeros(1, dtype=np.int64),
        state_entries=len(salted),
        state_entry_bytes=ENTRY_BYTES,
        workers=context.workers,
        is_random=params.pick == "random",
    )
