"""The form of `run.json`: what each part that is read of it may be."""

from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, create_model

from streamgroup.base.pydantic_errors import first_problem
from streamgroup.study.run_option_columns import DEFAULTS, KINDS

__all__ = ["first_fault"]


class _Part(BaseModel):
    """An object of the record. Other entries are left alone, and those with a default may be missing, not be null."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _Generator(_Part):
    name: str
    parameters: dict[str, JsonValue] | None = None
    seed: int | None = None


class _Trace(_Part):
    fingerprint: str
    path: str | None = None
    name: str | None = None
    tuples: int = 0
    generator: _Generator | None = None


class _Grouping(_Part):
    file_digest: str | None = None
    file_digests: dict[str, str | None] = {}


class _Code(_Part):
    program: str = ""
    grouping: str | None = None


class _Machine(_Part):
    service_asked_ms: float
    service_factor: float
    lateness_mean_ms: float
    lateness_p99_ms: float


class _Sources(_Part):
    out_of_order: float = 0.0


class _Feedback(_Part):
    # Null where no report was taken in, as in a single batch.
    delay_mean_ms: float | None


class _Engine(_Part):
    name: str
    machine: _Machine
    starts: int = 1
    sources: _Sources = _Sources()
    feedback: _Feedback | None = None


# An option that need not be given is null then. Runs of earlier versions have fewer of them.
_Options = create_model(
    "_Options",
    __base__=_Part,
    **{
        name: (kind | None if DEFAULTS.get(name, "") is None else kind, DEFAULTS.get(name))
        for name, kind in KINDS.items()
        if name != "trace"
    },  # type: ignore[call-overload]
)


class _Record(_Part):
    schema_version: int
    trace: _Trace
    grouping: _Grouping = _Grouping()
    options: _Options = _Options()  # type: ignore[valid-type]
    option_digests: dict[str, str | None] = {}
    code: _Code = _Code()
    versions: dict[str, str] = {}
    meanings: dict[str, int] = {}
    app_digest: str = ""
    aggregator_grouping_digest: str = ""
    aggregator_grouping_files: dict[str, str | None] = {}
    clock: str = ""
    # Not there for a replay.
    engine: _Engine = _Engine.model_construct()


def first_fault(record: Any) -> str | None:
    """Return the first entry of the content of `run.json` that is not what it must be, with the reason; None if all is.

    A run in an engine has the entry `engine`.
    """
    try:
        _Record.model_validate(record)
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        # In JSON it is called an object; tables are the files beside.
        return ": ".join(part for part in (place, reason.replace("not a table", "not an object")) if part)
    if record.get("clock") == "wall" and "engine" not in record:
        return "engine: it is missing"
    return None
