"""Finds the grouping that the text of `-g` names: its module, parameters and canonical text."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamgroup.base import modules_by_name
from streamgroup.base.errors import UsageError
from streamgroup.base.limits import DEFAULT_SOURCES
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.groupings._detector_parameter import with_detector
from streamgroup.groupings.protocol import GroupingParams
from streamgroup.replay.scenario.grouping_text import split_label, split_text
from streamgroup.replay.scenario.import_user_code import import_file
from streamgroup.replay.scenario.user_code_errors import describe_error

__all__ = ["Selection", "default_sources", "family", "find_module", "listed", "parameters", "select"]


@dataclass(frozen=True)
class Selection:
    """A grouping that was asked for: `text` names it with the parameters that differ from their defaults.

    A label stands in `text` in place of the name.
    """

    name: str
    text: str
    module: Any
    params: GroupingParams
    outside_digest: str = ""

    @property
    def code_name(self) -> str:
        """Name what is compiled: with another detector a grouping is other code, with a cache of its own.

        Groupings with states of one class may share it.
        """
        if self.params.compiled_as is not None:
            return self.params.compiled_as
        field = type(self.params).model_fields.get("detector")
        detector = getattr(self.params, "detector", None)
        return self.name if field is None or detector == field.default else f"{self.name}:{detector}"

    def choices_per_key(self, workers: int) -> int | None:
        """Return what the parameters' method of that name says, checked where it is a user's."""
        return self._checked("choices_per_key", workers)

    def cold_choices(self, workers: int) -> int | None:
        """Return what the parameters' method of that name says, checked where it is a user's."""
        return self._checked("cold_choices", workers)

    def _checked(self, name: str, workers: int) -> int | None:
        try:
            found = getattr(self.params, name)(workers)
        except Exception as error:
            if not self.outside_digest:
                raise
            raise UsageError(f"{self.name}: {name}() failed: {describe_error(error, self.module)}") from error
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, Integral) or found < 1:
            raise UsageError(f"{self.name}: {name}() gave {found!r}", "a whole number from 1 on, or None")
        return int(found)


def family() -> list[str]:
    """Name the groupings there are."""
    return modules_by_name.names(modules_by_name.GROUPINGS)


def find_module(name: str) -> tuple[Any, str]:
    """Return the module of a grouping, by its name or its file, and the digest of a file."""
    if name.endswith(".py"):
        return import_file(Path(name), "grouping", ("Params", "start"))
    return modules_by_name.load(modules_by_name.GROUPINGS, name, "grouping"), ""


def parameters(module: Any, given: dict[str, list[str]]) -> type[GroupingParams]:
    """Return the parameters of a grouping, with those of the detector that it uses or is given."""
    kind: type[GroupingParams] = module.Params
    field = kind.model_fields.get("detector")
    return kind if field is None else with_detector(kind, given.get("detector", [field.default])[0])


def _given(kind: type[GroupingParams], text: str, values: list[tuple[str, list[str]]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for key, pieces in values:
        if key not in kind.model_fields:
            known = list(kind.model_fields)
            hint = suggest(key, known) if known else "it has no parameters"
            raise UsageError(f"-g {text!r}: there is no parameter {key!r}", hint)
        if len(pieces) > 1 or (".." in pieces[0] and key not in kind.file_parameters):
            raise UsageError(
                f"-g {text!r}: {key} has several values",
                "lists and ranges are for sweep: give one value here",
            )
        given[key] = pieces[0]
    return given


def _params(module: Any, text: str, values: list[tuple[str, list[str]]]) -> GroupingParams:
    kind = parameters(module, dict(values))
    given = _given(kind, text, values)
    try:
        return kind(**given)
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        hint = kind.model_fields[place].description if place in kind.model_fields else None
        reason = reason[0].lower() + reason[1:]
        raise UsageError(f"-g {text!r}: {place or 'parameters'}: {reason}", hint) from None


def _canonical(name: str, params: GroupingParams) -> str:
    changed = []
    for field, info in type(params).model_fields.items():
        value = getattr(params, field)
        if value != info.default or info.is_required():
            changed.append(f"{field}={str(value).lower() if isinstance(value, bool) else value}")
    return f"{name}:{','.join(changed)}" if changed else name


def select(text: str) -> Selection:
    """Find the grouping that a text names and check its parameters; every mistake is a usage error with a hint."""
    labelled, values = split_text(text)
    label, name = split_label(labelled)
    if label and label in family():
        raise UsageError(f"-g {text!r}: {label} is the name of a grouping", "take another label")
    module, digest = find_module(name)
    params = _params(module, text, values)
    return Selection(name, _canonical(label or name, params), module, params, digest)


def listed(text: str) -> tuple[Any, type[GroupingParams], GroupingParams | None]:
    """Find a grouping whose parameters are to be listed: its module, their class, and their values.

    The values are None where some are required and not given, or the defaults alone are refused: the list is how one
    learns that. Any other mistake is the usage error of `select`.
    """
    labelled, values = split_text(text)
    module, _ = find_module(split_label(labelled)[1])
    kind = parameters(module, dict(values))
    given = _given(kind, text, values)
    try:
        return module, kind, kind(**given)
    except ValidationError as error:
        if not given or any(problem["type"] == "missing" for problem in error.errors()):
            return module, kind, None
    return module, kind, select(text).params


def default_sources(texts: Iterable[str]) -> int:
    """Return the number of sources of runs through some groupings if the user does not say: the same for all.

    That of the groupings where they agree, else the usual one, so that they are compared under the same conditions.
    """
    found = {select(text).params.default_sources() for text in texts}
    return found.pop() if len(found) == 1 else DEFAULT_SOURCES
