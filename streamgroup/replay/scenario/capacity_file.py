"""The capacity model from a TOML file (`--capacity`): fills in the options that no flag gives."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictBool, StrictInt, ValidationError

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.base.numbers_and_durations import parse_duration_ns
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.time_count_or_share import parse_extent
from streamgroup.base.toml import read_toml
from streamgroup.cluster.service_distribution import parse_distribution, parse_timed_service
from streamgroup.cluster.state_cost import parse_state_cost
from streamgroup.cluster.worker_speeds import parse_jitter, parse_slowdown, split_change
from streamgroup.replay.scenario.aggregator_plan import check_aggregators
from streamgroup.replay.scenario.grouping_text import placed
from streamgroup.replay.scenario.options import MOST_WAITING, WHEN_FULL, ReplayOptions
from streamgroup.replay.scenario.source_service import parse_source_service

__all__ = ["CapacityFile", "FilledOptions", "read_capacity", "with_capacity"]


def _text(value: object) -> object:
    """Take a text or a whole number; other numbers are texts already, as they stand in the file."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _factors(value: object) -> object:
    """Take factors as one text, one number or a list of them."""
    if isinstance(value, list) and value and all(isinstance(_text(item), str) for item in value):
        return ",".join(str(item) for item in value)
    return _text(value)


def _texts(value: object) -> object:
    return [_text(item) for item in value] if isinstance(value, list) else [_text(value)]


def _changes(value: object) -> object:
    """Take a table of T = FACTORS, or a list of texts as on the command line."""
    if isinstance(value, dict):
        made = {when: _factors(factors) for when, factors in value.items()}
        wrong = next((when for when, factors in made.items() if not isinstance(factors, str)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} has no factors: write a list of numbers")
        return tuple(f"{when}={factors}" for when, factors in made.items())
    return _texts(value)


Text = Annotated[str, BeforeValidator(_text)]
Factors = Annotated[str, BeforeValidator(_factors)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Changes = Annotated[tuple[str, ...], BeforeValidator(_changes)]


class CapacityFile(BaseModel):
    """What a capacity file may say; each key is the option of the same name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: Text | None = None
    key_cost: str | None = None
    service_distribution: Text | None = None
    slowdown: Factors | None = None
    slowdown_at: Changes = ()
    speed_jitter: Text | None = None
    source_service: Factors | None = None
    state_cost: Text | None = None
    memory_limit: Text | None = None
    aggregators: StrictInt | None = None
    aggregator_service: Text | None = None
    aggregator_grouping: Text | None = None
    queue_capacity: StrictInt | None = None
    when_full: str | None = None
    join: Texts = ()
    leave: Texts = ()
    crash: Texts = ()
    redeliver: StrictBool = False


def _check_change(text: str) -> None:
    when, factors = split_change(text)
    parse_extent(when, f"--slowdown-at {text}")
    parse_slowdown(factors, MOST_WORKERS, f"--slowdown-at {text}")


# What can be checked without the trace, so that an error names its line.
_CHECKS: dict[str, Callable[[str], object]] = {
    "service": lambda text: parse_duration_ns(text, "--service"),
    "service_distribution": parse_distribution,
    "slowdown": lambda text: parse_slowdown(text, MOST_WORKERS),
    "slowdown_at": _check_change,
    "speed_jitter": parse_jitter,
    "source_service": parse_source_service,
    "aggregator_service": lambda text: parse_timed_service(text, "--aggregator-service"),
    "state_cost": lambda text: parse_state_cost(text, None, 1),
    "memory_limit": lambda text: parse_state_cost(None, text, 1),
    "join": lambda text: parse_extent(text, "--join"),
    "leave": lambda text: parse_extent(text.partition(":")[0], "--leave"),
    "crash": lambda text: parse_extent(text.partition(":")[0], "--crash"),
}


def read_capacity(path: str | Path) -> CapacityFile:
    """Read and check a file; UsageError with the file, and the line where it is known, for whatever is wrong in it.

    A `key_cost`, and a Python file of `aggregator_grouping`, are given from the folder of the file.
    """
    path = Path(path)
    source, content = read_toml(path, f"--capacity {path}", "name a TOML file", parse_float=str)
    known = list(CapacityFile.model_fields)
    names: dict[str, str] = {}
    for key in content:
        name = key.replace("-", "_")
        if name in names:
            raise UsageError(f"{_where(path, source, key)}: {key} is {names[name]} again", "keep one of them")
        names[name] = key
        if name not in known:
            raise UsageError(f"{_where(path, source, key)}: unknown key {key!r}", suggest(name, known))
    try:
        made = CapacityFile(**{name: content[key] for name, key in names.items()})
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        name = place.partition(".")[0]
        raise UsageError(f"{_where(path, source, names[name])}: {name}: {reason}", _SEE) from None
    for name, check in _CHECKS.items():
        value = getattr(made, name)
        for text in value if isinstance(value, tuple) else [value] * (value is not None):
            try:
                check(text)
            except UsageError as error:
                raise UsageError(f"{_where(path, source, names[name])}: {error.message}", error.hint) from None
    _check_together(made, lambda name: _where(path, source, names[name]))
    if made.service is not None and made.key_cost is not None:
        raise UsageError(f"{_where(path, source, names['key_cost'])}: service and key_cost exclude each other", _ONE)
    if made.key_cost is not None:
        made = made.model_copy(update={"key_cost": str(path.parent / made.key_cost)})
    if made.aggregator_grouping is not None:
        made = made.model_copy(update={"aggregator_grouping": placed(made.aggregator_grouping, path.parent)})
    return made


def _check_together(made: CapacityFile, where: Callable[[str], str]) -> None:
    """Refuse what is out of range, whatever the flags say."""
    if made.queue_capacity is not None and not 1 <= made.queue_capacity < MOST_WAITING:
        raise UsageError(f"{where('queue_capacity')}: {made.queue_capacity} is not between 1 and 2^40", _SEE)
    if made.aggregators is not None:
        check_aggregators(made.aggregators, f"{where('aggregators')}:")
    if made.when_full is not None and made.when_full not in WHEN_FULL:
        raise UsageError(f"{where('when_full')}: there is no kind {made.when_full!r}", " or ".join(WHEN_FULL))


_SEE = "docs/cluster.md describes capacity files"
_ONE = "keep one: all tuples cost the same, or each key has its cost"


def _where(path: Path, source: str, key: str) -> str:
    """Name the file, and the line if it begins with the key or is its table."""
    begins = re.compile(
        rf"""\s*(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')\s*[=.]|\s*\[+\s*{re.escape(key)}\b"""
    )
    numbers = (number for number, line in enumerate(source.splitlines(), 1) if begins.match(line))
    number = next(numbers, None)
    return f"--capacity {path}" + ("" if number is None else f", line {number}")


class FilledOptions(ReplayOptions):
    """Options with the values of their capacity file, which is not read again; copies stay filled."""


def with_capacity(options: ReplayOptions, file: CapacityFile | None = None) -> ReplayOptions:
    """Fill what the flags left at None, () or False from the capacity file, if one is named; a flag wins.

    `file` is its content if it has been read already. A flag for one of `service` and `key_cost` also wins over the
    other in the file. UsageError where both are flags.
    """
    if isinstance(options, FilledOptions):
        return options
    if options.service is not None and options.key_cost is not None:
        raise UsageError("--service and --key-cost exclude each other", _ONE)
    if options.capacity is None:
        return options
    made = read_capacity(options.capacity) if file is None else file
    costs = {"service", "key_cost"} if options.service is not None or options.key_cost is not None else set()
    open_ones = {
        name: value
        for name, value in made
        if name not in costs and _is_open(getattr(options, name)) and not _is_open(value)
    }
    return FilledOptions(**{**vars(options), **open_ones})


def _is_open(value: object) -> bool:
    """Return whether a value says nothing; 0 says something."""
    return value is None or value is False or value == ()
