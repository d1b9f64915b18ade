"""The data of charts of traces, without any run."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from streamgroup.base.errors import UsageError
from streamgroup.report.formatting import shown
from streamgroup.report.report_data import MOST_CONDITIONS, ReportData, named_profile
from streamgroup.report.trace_profile import profile_trace
from streamgroup.traces import layout
from streamgroup.traces.trace import open_trace

__all__ = ["all_traces", "gather_traces"]

# What is asked of runs where there is none.
_NO_RUN = {"grouping": pl.String, "latency_p99_ms": pl.Float64}


def all_traces(paths: Sequence[Path]) -> bool:
    """Report whether paths are traces; UsageError where some are and some are not."""
    traces = [path for path in paths if (path / layout.MANIFEST).is_file()]
    if traces and len(traces) < len(paths):
        other = next(path for path in paths if path not in traces)
        raise UsageError(f"{traces[0]} is a trace and {other} is not", "name runs or traces")
    return bool(traces)


def gather_traces(paths: Sequence[Path]) -> ReportData:
    """Look at traces, each under its name; of those called the same all but the first have a number, too.

    UsageError for more than charts have room for, DataError for one that is damaged.
    """
    if len(paths) > MOST_CONDITIONS:
        raise UsageError(f"{len(paths)} traces: a chart has room for {MOST_CONDITIONS}", "name fewer")
    profiles = []
    taken: dict[str, int] = {}
    for path in paths:
        found = profile_trace(open_trace(path))
        taken[found.name] = taken.get(found.name, 0) + 1
        number = taken[found.name]
        profiles.append(named_profile(found, shown(found.name if number == 1 else f"{found.name} ({number})")))
    return ReportData(pl.DataFrame(schema=_NO_RUN), {}, traces=tuple(profiles))
