"""Makes what `run.json` records: trace, options, and digests of the files and the code that the figures come from."""

import dataclasses
import hashlib
import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from streamgroup.base.compiling.code_cache import sources_digest
from streamgroup.base.run_tables_version import SCHEMA_VERSION
from streamgroup.base.version import VERSION
from streamgroup.metrics.metric_names import MEANINGS
from streamgroup.replay.accounting.outcome import Outcome
from streamgroup.replay.compile_grouping import imported_digest
from streamgroup.replay.scenario.app_selection import AppSelection, select_app
from streamgroup.replay.scenario.capacity_file import with_capacity
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.run_option_columns import readable
from streamgroup.traces.manifest import Manifest
from streamgroup.traces.trace import Trace

__all__ = ["code_of", "content_digest", "file_digest", "files_of", "generator_of", "made_record", "outside_code"]

_LIBRARIES = ("numpy", "numba", "pyarrow", "polars")
# What decides the figures of a run, besides its grouping.
_DECIDING = ("apps", "cluster", "engines", "kernels", "metrics", "replay", "traces")


def made_record(trace: Trace, options: ReplayOptions, outcome: Outcome, *, baseline: bool) -> dict[str, Any]:
    """Return the record of a run; `baseline` says that it was compared with one."""
    outside = {"file_digest": outcome.grouping_digest} if outcome.grouping_digest else {}
    selection = select(options.grouping)
    found = selection.params.facts(options.workers)
    made = trace.manifest
    facts = {"facts": found} if found else {}
    files = {"file_digests": digests} if (digests := files_of(selection)) else {}
    # A capacity file names the costs, too.
    costs = with_capacity(options).key_cost
    return {
        "schema_version": SCHEMA_VERSION,
        "trace": {
            "path": readable(str(trace.path)),
            "name": readable(trace.name),
            "fingerprint": trace.fingerprint(),
            "tuples": trace.tuples,
            "keys": trace.keys,
            "generator": generator_of(made),
        },
        "grouping": {"text": readable(outcome.grouping), "parameters": outcome.parameters, **facts, **files, **outside},
        "options": {name: readable(value) for name, value in dataclasses.asdict(options).items()},
        **({} if costs is None else {"option_digests": {"key_cost": content_digest(costs)}}),
        "baseline": baseline,
        "meanings": MEANINGS,
        "code": code_of(selection),
        **outside_code(options),
        "versions": {"streamgroup": VERSION, "python": platform.python_version(), **_libraries()},
        "timings": {"loop_seconds": outcome.loop_seconds, "replay_seconds": outcome.total_seconds},
        "host": {"system": platform.platform(), "machine": platform.machine(), "cores": os.cpu_count()},
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def file_digest(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(path: str) -> str | None:
    """Return the sha256 of a file that is named, None for one that cannot be read, which the run reports."""
    try:
        return file_digest(Path(path))
    except OSError:
        return None


def files_of(selection: Selection) -> dict[str, str | None]:
    """Return the digests of the files that the parameters of a grouping name, by parameter."""
    return {name: content_digest(path) for name, path in selection.params.files().items()}


def outside_code(options: ReplayOptions) -> dict[str, Any]:
    """Return the digests of files that hold an application or the aggregators' grouping, by option, and of those that
    this grouping's parameters name.
    """
    found: dict[str, AppSelection | Selection] = {}
    files: dict[str, str | None] = {}
    if options.app is not None:
        found["app"] = select_app(options.app)
    if options.aggregator_grouping is not None:
        found["aggregator_grouping"] = chosen = select(options.aggregator_grouping)
        files = files_of(chosen)
    digests = {f"{name}_digest": one.outside_digest for name, one in found.items() if one.outside_digest}
    return {**digests, **({"aggregator_grouping_files": files} if files else {})}


def code_of(selection: Selection) -> dict[str, str]:
    """Return the digests of the code that decides the figures of a run: the program's, and the grouping's."""
    own = selection.outside_digest or imported_digest((selection.module.__name__,))
    return {"program": sources_digest(_DECIDING, VERSION), "grouping": own}


@cache
def _libraries() -> dict[str, str]:
    """Return the versions of libraries; finding one takes milliseconds."""
    return {name: importlib.metadata.version(name) for name in _LIBRARIES}


def generator_of(made: Manifest) -> dict[str, Any] | None:
    """Return the generator of a trace with its parameters and seed, None for one that was not generated."""
    if not made.generator:
        return None
    return {"name": made.generator, "parameters": made.generator_parameters, "seed": made.seed}
