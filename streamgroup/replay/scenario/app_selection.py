"""Finds the application that the text of `--app` names."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamgroup.apps.protocol import AppParams
from streamgroup.base import modules_by_name
from streamgroup.base.errors import RunError, StreamgroupError, UsageError
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.spelling_hint import suggest
from streamgroup.replay.scenario.grouping_selection import Selection
from streamgroup.replay.scenario.grouping_text import split_text
from streamgroup.replay.scenario.import_user_code import import_file
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.user_code_errors import describe_error
from streamgroup.traces.trace import Trace

__all__ = ["AppSelection", "blamed", "plan_app", "select_app"]

_COLUMNS = {"value", "weight"}
_FUNCTIONS = ("start", "update", "merge", "finish", "largest", "keeps")


@dataclass(frozen=True)
class AppSelection:
    """An application: `text` names it with its parameters, `outside_digest` is that of a file outside the package."""

    text: str
    module: Any
    params: AppParams
    outside_digest: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the columns of the trace that it reads."""
        return tuple(getattr(self.module, "COLUMNS", ()))

    @property
    def mergeable(self) -> bool:
        """Return whether states of one key on several workers have a common result."""
        return bool(getattr(self.module, "MERGEABLE", True))

    @property
    def largest(self) -> int | None:
        """Return how many results of a window are kept, None for all."""
        if not hasattr(self.module, "largest"):
            return None
        with blamed(self.text, self.module):
            found = self.module.largest(self.params)
        if found is not None and (type(found) is not int or found < 1):
            raise RunError(f"--app {self.text}: largest() gave {found!r}", "a whole number from 1 on, or None for all")
        return found

    @property
    def keeps(self) -> Callable[[str], bool] | None:
        """Return what says of a key whether it has results, None where all have."""
        return getattr(self.module, "keeps", None)


class blamed:  # noqa: N801 (used as a function)
    """Reports an error in the functions of an application, a `module` that `text` names, as its own."""

    def __init__(self, text: str, module: Any) -> None:
        self._text, self._module = text, module

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception | SystemExit) and not isinstance(error, StreamgroupError):
            raise RunError(f"--app {self._text}: {describe_error(error, self._module)}") from error


def select_app(text: str) -> AppSelection:
    """Find an application and check its parameters; every mistake is a usage error with a hint."""
    name, given = split_text(text, "--app")
    if name.endswith(".py"):
        module, digest = import_file(Path(name), "application", ("start", "update", "finish"))
    else:
        module, digest = modules_by_name.load(modules_by_name.APPS, name, "application"), ""
    _check(module, text)
    kind: type[AppParams] = getattr(module, "Params", AppParams)
    for key, values in given:
        if key not in kind.model_fields:
            known = list(kind.model_fields)
            hint = suggest(key, known) if known else "it has no parameters"
            raise UsageError(f"--app {text!r}: there is no parameter {key!r}", hint)
        if len(values) > 1:
            raise UsageError(f"--app {text!r}: {key} has several values", "give one value")
    with blamed(text, module):
        try:
            params = kind(**{key: values[0] for key, values in given})
        except ValidationError as error:
            place, reason, _ = first_problem(error)
            raise UsageError(f"--app {text!r}: {place or 'parameters'}: {reason[0].lower() + reason[1:]}") from None
    return AppSelection(text, module, params, digest)


def plan_app(options: ReplayOptions, selection: Selection, trace: Trace) -> AppSelection | None:
    """Read and check what the options say of an application; None where there is none."""
    if options.app is None:
        return None
    app = select_app(options.app)
    for column in app.columns:
        if column not in trace.columns:
            raise UsageError(
                f"--app {app.text} reads the column {column}, and {trace.path} has none",
                f"ingest it again with --{column}",
            )
    if app.mergeable:
        return app
    if selection.choices_per_key(options.workers) != 1:
        raise UsageError(
            f"--app {app.text} cannot merge the states of one key, and {selection.text} splits keys over workers",
            "take a grouping that keeps each key on one worker, such as kg",
        )
    if options.join or options.leave or options.crash:
        raise UsageError(
            f"--app {app.text} cannot merge the states of one key, and keys move when workers join, leave or crash",
            "leave out --join, --leave and --crash",
        )
    return app


def _check(module: Any, text: str) -> None:
    """Refuse a module that is no application."""
    columns = getattr(module, "COLUMNS", ())
    if not isinstance(columns, tuple) or not all(isinstance(one, str) and one in _COLUMNS for one in columns):
        raise UsageError(f"--app {text!r}: COLUMNS is {columns!r}", "a tuple of value, weight, or both")
    if getattr(module, "MERGEABLE", True) and not hasattr(module, "merge"):
        raise UsageError(
            f"--app {text!r}: it has no merge(a, b)", "write one, or MERGEABLE = False where states cannot be merged"
        )
    for name in _FUNCTIONS:
        if not callable(getattr(module, name, len)):
            raise UsageError(f"--app {text!r}: {name} is not a function", "see the guide on adding an application")
    kind = getattr(module, "Params", AppParams)
    if not (isinstance(kind, type) and issubclass(kind, AppParams)):
        raise UsageError(f"--app {text!r}: Params is not a subclass of AppParams", "write class Params(AppParams)")
