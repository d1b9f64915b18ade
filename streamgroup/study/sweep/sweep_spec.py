"""The specification of a sweep, from flags and a TOML file."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.base.storage.filesystems import split_url
from streamgroup.base.storage.globs import has_magic, matching
from streamgroup.base.storage.storage_path import locate
from streamgroup.base.toml import read_toml
from streamgroup.replay.scenario.arrivals_option import SEARCHED, parse_arrivals
from streamgroup.replay.scenario.grouping_selection import default_sources, find_module, select
from streamgroup.replay.scenario.grouping_text import placed, split_label, split_text
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.replay_run import check_top_keys
from streamgroup.study.sweep.value_lists import arrivals_of, as_text, groupings_of, whole_numbers
from streamgroup.traces import layout

__all__ = ["DEFAULTS", "MOST_CELLS", "Spec", "make_spec", "read_file"]

# Options of a replay that a sweep takes several values of, under names of its own or as lists.
_SWEPT = ("grouping", "workers", "sources", "arrivals", "capacity", "seed")
DEFAULTS = ReplayOptions("", 1)
_MOST_SEED = 2**63 - 1
MOST_CELLS = 100_000
# Options that name a file, which stands beside the one that names it.
_FILES = ("key_cost",)


@dataclass(frozen=True)
class Spec:
    """Traces, and values of each option: a sweep is all their combinations. `synth` are the texts of
    traces to be made. `options` are the same in every cell."""

    traces: tuple[str, ...]
    synth: tuple[str, ...]
    groupings: tuple[str, ...]
    workers: tuple[int, ...]
    sources: tuple[int, ...]
    arrivals: tuple[str, ...]
    capacity: tuple[str | None, ...]
    seeds: tuple[int, ...]
    baseline: bool
    options: Mapping[str, Any]


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


_Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class _File(BaseModel):
    """The keys of a file but for the options that all cells share; all may be left to flags."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    traces: _Texts = Field((), validation_alias=AliasChoices("traces", "trace"))
    synth: _Texts = ()
    groupings: Annotated[tuple[str | dict[str, Any], ...], BeforeValidator(_listed)] = Field(
        (), validation_alias=AliasChoices("groupings", "grouping")
    )
    workers: _Texts = ()
    sources: _Texts = ()
    arrivals: _Texts = ()
    capacity: _Texts = ()
    seed: _Texts = ()
    seeds: int | None = None
    baseline: bool | None = None


def _whole_file() -> type[BaseModel]:
    """Add the options that all cells share, each of its type, or None where it is not given."""
    shared: dict[str, Any] = {}
    for field in dataclasses.fields(ReplayOptions):
        if field.name not in _SWEPT:
            kind: Any = _Texts if field.type == tuple[str, ...] else field.type
            shared[field.name] = (kind | None, None)
    return create_model("SweepFile", __base__=_File, **shared)


def read_file(path: Path) -> dict[str, Any]:
    """Read a TOML file with values by name, those that it has; paths in it are taken from its own directory.

    UsageError for a file that cannot be read, an unknown key or a value of a wrong kind, with its place.
    """
    _, content = read_toml(path, str(path), "name a TOML file, or traces")
    kind = _whole_file()
    named = {key.replace("-", "_"): value for key, value in content.items()}
    if len(named) < len(content):
        twice = next(key for key in content if "-" in key and key.replace("-", "_") in content)
        raise UsageError(f"{path}: {twice} is there as {twice.replace('-', '_')}, too", "keep one of them")
    try:
        read = kind.model_validate(named)
    except ValidationError as error:
        place, reason, is_unknown = first_problem(error)
        if is_unknown:
            raise UsageError(f"{path}: unknown key {place!r}", suggest(place, kind.model_fields)) from None
        raise UsageError(f"{path}: {place}: {reason[0].lower()}{reason[1:]}") from None
    found = {name: value for name in read.model_fields_set if (value := getattr(read, name)) is not None}
    for name in _File.model_fields:
        if found.get(name) == ():
            raise UsageError(f"{path}: {name}: the list is empty", "give a value, or leave the key out")
    beside = path.parent
    if "traces" in found:
        found["traces"] = tuple(_trace_beside(text, beside) for text in found["traces"])
    if "capacity" in found:
        found["capacity"] = tuple(str(beside / text) for text in found["capacity"])
    for name in _FILES:
        if name in found:
            found[name] = str(beside / found[name])
    if "app" in found:
        found["app"] = placed(found["app"], beside)
    if "aggregator_grouping" in found:
        found["aggregator_grouping"] = _beside(found["aggregator_grouping"], beside)
    if "groupings" in found:
        texts = (
            text if isinstance(text, str) else as_text(text, f"{path}: groupings.{place}")
            for place, text in enumerate(found["groupings"])
        )
        found["groupings"] = tuple(_beside(text, beside) for text in texts)
    return found


def _trace_beside(text: str, directory: Path) -> str:
    return str(directory / text) if split_url(text) is None else locate(text).reference


def _beside(text: str, directory: Path) -> str:
    """Take the files that the text of a grouping names from a directory: the grouping's own, and its parameters'."""
    text = placed(text, directory)
    labelled, given = split_text(text)
    rest = text[len(labelled) :]
    _, name = split_label(labelled)
    files = _file_parameters(name) if given else ()
    if not any(key in files for key, _ in given):
        return labelled + rest
    pieces = []
    for key, values in given:
        moved = [str(directory / value) if key in files and value else value for value in values]
        pieces.append(f"{key}={','.join(moved)}")
    return f"{labelled}:{','.join(pieces)}"


def _file_parameters(name: str) -> tuple[str, ...]:
    """Name the parameters of a grouping that name files; none where it is wrong, which is reported later."""
    try:
        module, _ = find_module(name)
    except UsageError:
        return ()
    found: tuple[str, ...] = module.Params.file_parameters
    return found


def _matching(text: str) -> list[str]:
    """Return the traces that a pattern matches, sorted; the text itself where it is none, or names a trace."""
    place = locate(text)
    if not has_magic(place) or place.exists():
        return [text]
    found = [entry.place.reference for entry in matching(place) if (entry.place / layout.MANIFEST).is_file()]
    if not found:
        raise UsageError(f"no trace matches {text}", "check the path")
    return found


def make_spec(given: Mapping[str, Any]) -> Spec:
    """Check values by name: texts with lists and ranges for what is swept, options of a replay as they are.

    `seeds` is a number of seeds, from 0 on, `seed` lists them. UsageError for what is missing or wrong in itself.
    """
    for name, flag in (("traces", "a trace"), ("groupings", "-g"), ("workers", "-n")):
        if not (given.get(name) or (name == "traces" and given.get("synth"))):
            raise UsageError(f"a sweep needs {flag}", "streamgroup sweep TRACE... -g pkg -g sg -n 16,32 -o SWEEP")
    if given.get("seed") and given.get("seeds") is not None:
        raise UsageError("--seed and --seeds exclude each other", "give one of them")
    count = given.get("seeds")
    if count is not None and not 1 <= count <= MOST_CELLS:
        raise UsageError(f"--seeds {count} is not between 1 and {MOST_CELLS}")
    seeds = (
        range(count)
        if count is not None
        else whole_numbers(given.get("seed") or [str(DEFAULTS.seed)], "--seed", 0, _MOST_SEED)
    )
    groupings = [text for given_text in given["groupings"] for text in groupings_of(given_text)]
    for text in groupings:
        select(text)
    arrivals = arrivals_of(given.get("arrivals") or [DEFAULTS.arrivals])
    kinds = [parse_arrivals(text).name for text in arrivals]
    if given.get("max_pending") not in (None, DEFAULTS.max_pending) and "saturate" not in kinds:
        raise UsageError("--max-pending is for --arrivals saturate, and there are none", "add --arrivals saturate")
    if given.get("max_p99") is not None and not any(kind in SEARCHED for kind in kinds):
        raise UsageError("--max-p99 is the limit of a search, and there is none", "add --arrivals max")
    if given.get("top_keys") is not None:
        check_top_keys(given["top_keys"])
    names = {field.name for field in dataclasses.fields(ReplayOptions)} - {*_SWEPT}
    return Spec(
        traces=tuple(path for text in given.get("traces") or () for path in _matching(text)),
        synth=tuple(given.get("synth") or ()),
        groupings=tuple(groupings),
        workers=tuple(whole_numbers(given["workers"], "-n", 1, MOST_WORKERS)),
        sources=tuple(
            whole_numbers(given.get("sources") or [str(default_sources(groupings))], "--sources", 1, MOST_WORKERS)
        ),
        arrivals=tuple(arrivals),
        capacity=tuple(given.get("capacity") or [None]),
        seeds=tuple(seeds),
        baseline=bool(given.get("baseline")),
        options={name: given[name] for name in names if given.get(name) is not None},
    )
