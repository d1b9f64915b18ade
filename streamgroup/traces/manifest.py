"""The manifest of a trace, `trace.json`: what the trace is, where it came from, what was lost on the way."""

import json
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from streamgroup.base.errors import DataError
from streamgroup.base.pydantic_errors import first_problem
from streamgroup.base.storage.output_on_disk_or_object_store import is_unfinished
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces.layout import FORMAT_VERSION, MANIFEST
from streamgroup.traces.write_trace_files import PartStats

__all__ = ["Input", "KeyPart", "Manifest", "measured", "read_manifest", "write_manifest"]


class Input(BaseModel):
    """A file the trace was made from: its path as given, its size, its sha256 unless not wanted."""

    model_config = ConfigDict(frozen=True)

    path: str
    bytes: int | None = Field(default=None, ge=0)
    sha256: str | None = None

    @field_validator("path", mode="before")
    @classmethod
    def _readable(cls, value: Any) -> Any:
        """Escape the bytes of a file name that are not UTF-8, which JSON cannot hold."""
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return value


class KeyPart(BaseModel):
    """A part of composite keys: the column or expression that it is made of, and its type as engines know it."""

    model_config = ConfigDict(frozen=True)

    name: str
    type: Literal["string", "int", "long", "bytes", "boolean"] = "string"


class Manifest(BaseModel):
    """All of `trace.json`; a hand-made trace needs only `format_version`. Unknown fields are left alone.

    Timestamps are us since 1970 (UTC). `tuples`, `keys` and the rest of the first block describe the content,
    `rows_*` the input: rows read = kept + rejected + filtered. `key_parts` is there for composite keys. `times` is
    "none" where the input has none, and timestamps are places in the stream. `in_order`: whether the input came in
    time order, `out_of_order` how many rows came with a time before the latest seen
    until then.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    format_version: int
    name: str | None = None
    program_version: str | None = None
    fingerprint: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")

    tuples: int | None = Field(default=None, ge=0)
    keys: int | None = Field(default=None, ge=0)
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    p1: float | None = Field(default=None, ge=0, le=1)
    total_cost_ns: int | None = Field(default=None, ge=0)
    mean_cost_us: float | None = Field(default=None, ge=0)
    key_parts: list[KeyPart] | None = Field(default=None, min_length=2)

    reader: str | None = None
    reader_options: dict[str, JsonValue] | None = None
    inputs: list[Input] | None = None
    generator: str | None = None
    generator_parameters: dict[str, JsonValue] | None = None
    seed: int | None = None

    rows_read: int | None = Field(default=None, ge=0)
    rows_kept: int | None = Field(default=None, ge=0)
    rows_rejected: int | None = Field(default=None, ge=0)
    rejected: dict[str, int] | None = None
    rows_filtered: int | None = Field(default=None, ge=0)
    filtered: dict[str, int] | None = None
    times: Literal["none"] | None = None
    in_order: bool | None = None
    out_of_order: int | None = Field(default=None, ge=0)


def measured(stats: PartStats, keys: int, top_count: int, fingerprint: str) -> dict[str, Any]:
    """Return the fields of a manifest that describe the content, from what the writer returned.

    `top_count` is the count of the most frequent key. To be spread into `Manifest(...)`.
    """
    cost = stats.total_cost_ns
    return {
        "tuples": stats.rows,
        "keys": keys,
        "first_timestamp": stats.first_timestamp,
        "last_timestamp": stats.last_timestamp,
        "p1": top_count / stats.rows if stats.rows else None,
        "total_cost_ns": cost,
        "mean_cost_us": cost / (1000 * stats.rows) if cost is not None and stats.rows else None,
        "fingerprint": fingerprint,
    }


def write_manifest(trace: StoragePath | Path, manifest: Manifest) -> None:
    """Write `trace.json`, the last file of a trace: sorted names, absent fields left out, synced."""
    text = json.dumps(manifest.model_dump(exclude_none=True), indent=2, sort_keys=True, ensure_ascii=False)
    place = locate(trace) / MANIFEST
    with place.writing() as file:
        file.write(f"{text}\n".encode())
        if place.is_local:
            file.flush()
            os.fsync(file.fileno())


def read_manifest(trace: StoragePath | Path | str) -> Manifest:
    """Read `trace.json` of a trace directory; DataError when it is missing, broken or of another version."""
    root = locate(trace)
    path = root / MANIFEST
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, IsADirectoryError):
        if is_unfinished(root):
            what = f"{root} is not a trace: what wrote it was interrupted, or still writes (it has no {MANIFEST})"
            raise DataError(what, "make it again with --overwrite") from None
        raise DataError(
            f"{root} is not a trace: it has no {MANIFEST}",
            'a trace made by hand needs one with {"format_version": 1}',
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}", "fix it, or make the trace again") from None
    if not isinstance(content, dict) or "format_version" not in content:
        raise DataError(f"{path}: no format_version", 'write at least {"format_version": 1}')
    version = content["format_version"]
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DataError(
            f"{path}: format_version {version!r} is not known here, only {FORMAT_VERSION}",
            "use the version of streamgroup that made it, or make the trace again",
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        raise DataError(f"{path}: {place}: {reason}", "fix it, or make the trace again") from None
