"""`describe`: statistics of a trace."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgroup.base.output_formats import PEOPLE
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import Trace
from streamgroup.cli.typer_command import Formatted

if TYPE_CHECKING:
    from streamgroup.study.keys_by_best_window import KeyPeak

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `describe`."""

    trace: Trace
    top: Annotated[int, typer.Option("--top-keys", min=0, help="Keys to list.")] = 10
    over: Annotated[
        str | None,
        typer.Option(
            "--over", metavar="EXTENT", show_default=False,
            help="Rank keys by their largest share of any window of this length: 30m, 50000 tuples or 1%.",
        ),
    ] = None  # fmt: skip


def run(console: Console, options: Options) -> None:
    """Describe a trace: tuples, keys, span, rate, skew, drift of the hot keys, order and ties.

    With --over also which keys are hot, and when: total share, peak share, and the window of that.
    """
    from streamgroup.traces.statistics.describe import describe
    from streamgroup.traces.trace import open_trace

    trace = open_trace(options.trace)
    peaks = None
    if options.over is not None:
        from streamgroup.study.keys_by_best_window import find_peaks

        peaks = find_peaks(trace, options.over, options.top)
    facts = describe(trace, options.top).to_json()
    if console.form not in PEOPLE:
        more = {} if peaks is None else {"over": options.over, "peaks": [peak.to_json() for peak in peaks]}
        console.record({**facts, **more})
        return
    top = facts.pop("top_keys")
    fingerprint = facts.pop("fingerprint")
    console.record(facts, _rows(facts))
    if fingerprint is not None:
        console.text(f"\nfingerprint {fingerprint}")
    rows = top if peaks is None else [_peak(peak) for peak in peaks]
    if rows:
        console.text("")
        console.rows(rows)


def _rows(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each value, with its unit and meaning."""
    from streamgroup.traces.statistics.describe import MEANINGS
    from streamgroup.traces.timestamps import iso_time

    rows = []
    for name, value in facts.items():
        unit, meaning = MEANINGS[name]
        if "timestamp" in name and value is not None and unit == "us":
            when = iso_time(value)
            meaning = meaning if when is None else f"{meaning}: {when}"
        rows.append({"name": name, "value": value, "unit": unit, "meaning": meaning})
    return rows


def _peak(peak: "KeyPeak") -> dict[str, Any]:
    from streamgroup.traces.timestamps import moment

    last = peak.first_tuple + peak.window_tuples - 1
    start, stop = (None if at is None else moment(at) for at in (peak.from_timestamp, peak.to_timestamp))
    return {
        "key": peak.key,
        "share": peak.share,
        "peak_share": peak.peak_share,
        "from": f"tuple {peak.first_tuple}" if start is None else start,
        "to": f"tuple {last}" if stop is None else stop,
        "window_tuples": peak.window_tuples,
    }
