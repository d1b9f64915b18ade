"""`--engine-model micro-batch=...`: an engine that serves tuples in batches."""

from typing import NamedTuple

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_duration_ns

__all__ = ["MicroBatch", "parse_engine_model"]

_FLAG = "--engine-model"
_FORM = "write micro-batch=1000 or micro-batch=2s, with ,overhead=300ms behind it where a batch has one"


class MicroBatch(NamedTuple):
    """Batches of `tuples`, or of all that arrived by a tick of `every_ns` (the other one is 0), each of which takes
    `overhead_ns` besides its services.
    """

    tuples: int
    every_ns: int
    overhead_ns: int = 0


def parse_engine_model(text: str | None) -> MicroBatch | None:
    """Read `micro-batch=N|T[,overhead=DURATION]`; None for None, UsageError for anything else."""
    if text is None:
        return None
    model, _, rest = text.partition(",")
    name, _, size = model.partition("=")
    if name != "micro-batch" or not size:
        raise UsageError(f"{_FLAG} {text}: there is no such model", _FORM)
    overhead = 0
    if rest:
        what, _, value = rest.partition("=")
        if what != "overhead":
            raise UsageError(f"{_FLAG} {text}: micro-batch has no {what!r}", _FORM)
        overhead = parse_duration_ns(value, f"{_FLAG} overhead")
    if size.isdecimal():
        tuples, every = int(size), 0
    else:
        tuples, every = 0, parse_duration_ns(size, _FLAG)
    if not (tuples or every):
        raise UsageError(f"{_FLAG} {text}: a batch would hold nothing", _FORM)
    return MicroBatch(tuples, every, overhead)
