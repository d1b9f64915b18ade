"""Replay recorded streams through any stream grouping and measure what it would cost.

    import streamgroup as sg

    run = sg.replay("t.trace", "pkg", workers=16)
    run.metrics["imbalance"]
    run.tables.workers

Functions have the names of the commands and options those of their flags. Errors are `StreamgroupError` with a `hint`.
"""

from importlib import import_module

from streamgroup.base.version import VERSION

__version__ = VERSION

# Packages with the names of functions: once imported, they do not replace the functions any more.
for _name in ("ingest", "replay", "synth"):
    import_module(f"streamgroup.{_name}")

from streamgroup.api.runs import Run, Tables, open_run, replay, run  # noqa: E402
from streamgroup.api.studies import (  # noqa: E402
    Sweep,
    advise,
    bounds,
    check_gate,
    compare,
    explain,
    load_runs,
    reproduce,
    summarize,
    sweep,
)
from streamgroup.api.traces import describe, from_dataframe, ingest, ingest_each, synth  # noqa: E402
from streamgroup.base.errors import (  # noqa: E402
    DataError,
    EnvironmentFault,
    GateError,
    RunError,
    StreamgroupError,
    UsageError,
)

__all__ = [
    "DataError",
    "EnvironmentFault",
    "GateError",
    "Run",
    "RunError",
    "StreamgroupError",
    "Sweep",
    "Tables",
    "UsageError",
    "__version__",
    "advise",
    "bounds",
    "check_gate",
    "compare",
    "describe",
    "explain",
    "from_dataframe",
    "ingest",
    "ingest_each",
    "load_runs",
    "open_run",
    "replay",
    "reproduce",
    "run",
    "summarize",
    "sweep",
    "synth",
]
