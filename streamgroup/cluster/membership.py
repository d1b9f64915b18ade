"""Workers that join, leave or crash: parses the events, and picks the worker that leaves or crashes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamgroup.base.errors import RunError, UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.base.time_count_or_share import parse_position
from streamgroup.kernels import hash_placement, random_draws

__all__ = ["Event", "Kind", "parse_membership", "worker_of"]

Kind = Literal["join", "leave", "crash"]


@dataclass(frozen=True)
class Event:
    """A change of the workers, due at a time (ns since the first arrival) or at a tuple's index (the other is None).

    `number` is its place among all events, joins before leaves before crashes, each in the order given: of events that
    are due at one moment the lower number comes first, and it numbers the draw of a `random` worker. `worker` is the
    one that was named; without it and without `random` the highest live one is meant. A join has neither.
    """

    kind: Kind
    time_ns: int | None
    index: int | None
    worker: int | None
    random: bool
    number: int


def parse_membership(
    join: Sequence[str], leave: Sequence[str], crash: Sequence[str], tuples: int, workers: int
) -> list[Event]:
    """Read the texts `T` of joins and `T[:WORKER|random]` of leaves and crashes, for a trace of `tuples` tuples.

    `workers` are there from the start; those that join get the ids from `workers` on. UsageError for a text that is
    neither, a place past the last tuple, a worker that there never is, and more than 65536 workers.
    """
    ever = workers + len(join)
    if ever > MOST_WORKERS:
        raise UsageError(f"-n {workers} and {len(join)} --join make more than {MOST_WORKERS} workers", "let fewer join")
    events: list[Event] = []
    given: tuple[tuple[Kind, Sequence[str]], ...] = (("join", join), ("leave", leave), ("crash", crash))
    for kind, texts in given:
        for text in texts:
            events.append(_event(kind, text, tuples, ever, len(events)))
    return events


def _event(kind: Kind, text: str, tuples: int, ever: int, number: int) -> Event:
    what = f"--{kind} {text}"
    when, colon, who = (piece.strip() for piece in text.partition(":"))
    if colon and kind == "join":
        raise UsageError(f"{what}: a worker that joins has no name", "write the place alone, as in --join 50%")
    worker = None
    if colon and who != "random":
        if not re.fullmatch(r"[0-9]{1,9}", who):
            raise UsageError(
                f"{what}: {who!r} is no worker", f"write --{kind} {when}, --{kind} {when}:0 or --{kind} {when}:random"
            )
        worker = int(who)
        if worker >= ever:
            raise UsageError(f"{what}: there is never a worker {worker}", f"the workers are 0..{ever - 1}")
    position = parse_position(when, what, tuples)
    return Event(kind, position.time_ns, position.index, worker, who == "random", number)


def worker_of(event: Event, live: Sequence[int], seed: int) -> int:
    """Return the live worker (ascending ids) that leaves or crashes; RunError when it or any worker is missing."""
    if not live:
        raise RunError(f"--{event.kind}: no worker is left", "let fewer leave and crash, or more join")
    if event.random:
        word = random_draws.words(seed, "membership", np.array([event.number], dtype=np.int64))
        return int(live[int(hash_placement.place(word, len(live))[0])])
    if event.worker is None:
        return int(live[-1])
    if event.worker not in live:
        raise RunError(
            f"--{event.kind}: worker {event.worker} is not there at that moment",
            "it has left or crashed before, or joins later",
        )
    return event.worker
