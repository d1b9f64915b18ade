"""Two runs of one job side by side: their assignments, and what a replay predicts of what an engine measured."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.numbers_and_durations import parse_duration_ns
from streamgroup.base.spelling_hint import suggest
from streamgroup.metrics.metric_names import METRICS, TEXTS
from streamgroup.replay.micro_batch import batch_ends
from streamgroup.replay.scenario.micro_batch_option import MicroBatch, parse_engine_model
from streamgroup.study.read_run import AGAIN, read_record, recorded_options
from streamgroup.study.read_table import read_table
from streamgroup.study.replay_run import LOG

__all__ = [
    "MOST_LATE",
    "MOST_LATE_P99",
    "Witness",
    "assignments",
    "is_measured",
    "listened",
    "order_of_sources",
    "too_slow",
    "witness",
]

I64 = NDArray[np.int64]
Record = Mapping[str, Any]

# Lateness of wake-ups, as a share of the mean service time, above which a run is no witness: its mean, and that of one
# wake-up in a hundred, which the tail of the latencies follows.
MOST_LATE, MOST_LATE_P99 = 0.05, 0.1
# Metrics of times: those that a slow machine falsifies. The others follow from the assignments.
_TIMED = ("makespan", "throughput", "latency", "service", "sustainable", "backlog", "queue", "utilization", "work")
_ERROR = re.compile(r"^\s*([a-z_0-9]+?)(_nominal)?_error\s*(>=|>)\s*([0-9]*\.?[0-9]+)\s*(%?)\s*$")
_UNITS = ("s", "ms", "tps")


@dataclass(frozen=True)
class Witness:
    """What a replay predicts and an engine measured.

    `table` has a row for each metric but those that are words: `predicted`, `measured`, `error`, and `calibrated` and
    `calibrated_error`: as predicted with each service `factor` times as long, as it was in the engine. Errors are
    shares of the prediction.
    `refused` says why the run is no witness of times; then what was measured of them, and their errors, are null.
    """

    table: pl.DataFrame
    factor: float
    refused: str | None

    def broken(self, piece: str) -> list[str]:
        """Return a sentence if `makespan_error>3%` or `makespan_nominal_error>3%` is true, none if it is not."""
        parsed = error_condition(piece)
        assert parsed is not None
        name, is_nominal, sign, limit = parsed
        (row,) = self.table.filter(pl.col("metric") == name).to_dicts()
        if row["predicted"] is None and row["measured"] is None:
            return []
        error = row["error"] if is_nominal or row["calibrated"] is None else row["calibrated_error"]
        if error is None:
            return [f"{name}: {piece.strip()} cannot be judged: {self.refused or 'only one side has a value'}"]
        if not (abs(error) >= limit if sign == ">=" else abs(error) > limit):
            return []
        how = "" if is_nominal or row["calibrated"] is None else ", calibrated"
        return [f"{name}: the error is {100 * error:+.3g} %{how}, limit {100 * limit:g} %"]


def error_condition(piece: str) -> tuple[str, bool, str, float] | None:
    """Read a condition on an error: the metric, whether it is without calibration, the sign, and the limit as a share.

    A metric may go without its unit. None for another condition, UsageError for an unknown metric, and for a word.
    """
    match = _ERROR.match(piece)
    if match is None:
        return None
    name, nominal, sign, number, percent = match.groups()
    found = [one for one in (name, *(f"{name}_{unit}" for unit in _UNITS)) if one in METRICS]
    if not found:
        raise UsageError(f"--fail-on: there is no metric {name!r}", suggest(name, METRICS))
    if found[0] in TEXTS:
        raise UsageError(f"--fail-on: {found[0]} is a word, which has no change in size", "name another metric")
    return found[0], nominal is not None, sign, float(number) / (100 if percent else 1)


def is_measured(record: Record) -> bool:
    """Return whether a run is one of an engine."""
    return record.get("clock") == "wall"


def too_slow(record: Record) -> str | None:
    """Say why a run of an engine is no witness of times; None if it is one."""
    if (starts := record["engine"].get("starts", 1)) > 1:
        return f"the run was broken off and went on later, {starts} starts in all: its times have gaps"
    machine = record["engine"]["machine"]
    asked = machine["service_asked_ms"]
    limits = [("lateness_mean_ms", MOST_LATE, "on average")]
    if "micro_batch" not in record["engine"]:
        # In a batch, single late wake-ups are averaged out.
        limits.append(("lateness_p99_ms", MOST_LATE_P99, "one time in a hundred"))
    for name, most, which in limits:
        late = machine[name]
        if late > most * asked:
            share = f"{100 * late / asked:.3g} % of the service time" if asked else "and services take no time"
            return (
                f"the machine was too slow to be a witness: wake-ups were late by {late:.3g} ms, {share}, {which}, "
                f"and {100 * most:g} % are allowed"
            )
    return None


def order_of_sources(record: Record) -> str | None:
    """Say how much an engine changed the order of tuples from several sources; None where it did not."""
    share = record.get("engine", {}).get("sources", {}).get("out_of_order", 0.0)
    if not share:
        return None
    return (
        f"workers served {100 * share:.2g} % of the tuples after one that had arrived later, from another source: the "
        "longest latencies are other ones than in a replay, where workers serve first come, first served"
    )


def listened(record: Record) -> str | None:
    """Say why assignments are others than in a replay where sources listened to the workers of an engine, else None."""
    feedback = record.get("engine", {}).get("feedback")
    if feedback is None or feedback["delay_mean_ms"] is None:
        return None
    return (
        f"the sources listened to the workers, {feedback['delay_mean_ms']:.4g} ms late on average: what was measured "
        "decides where tuples go, so assignments are not expected to be equal; compare the metrics"
    )


def assignments(old: Path, new: Path) -> str | None:
    """Say whether two runs sent each tuple to the same worker, or where not; None where one has no log."""
    logs = [_log(run, ("worker",)) for run in (old, new)]
    if logs[0] is None or logs[1] is None:
        return None
    one, two = (log["worker"] for log in logs if log is not None)
    if len(one) != len(two):
        return f"assignments differ: {len(one)} tuples in OLD, {len(two)} in NEW"
    differ = np.flatnonzero(one != two)
    if not len(differ):
        return f"assignments are equal, in all {len(one)} tuples"
    at = int(differ[0])
    return (
        f"assignments differ in {len(differ)} of {len(one)} tuples, first in tuple {at}: "
        f"worker {one[at]} in OLD, {two[at]} in NEW"
    )


def witness(predicted: Path, row: Mapping[str, Any], measured: Mapping[str, Any], record: Record) -> Witness:
    """Hold a run of an engine (its row and record) against a replay (its directory and row)."""
    refused = too_slow(record)
    factor = float(record["engine"]["machine"]["service_factor"])
    log = _log(predicted, ("arrival_ns", "worker", "start_ns", "finish_ns"))
    tuples = _measured_tuples(predicted)
    # Not that of the row: the pair goes under the options of the run in the engine, which has no model.
    model = parse_engine_model(recorded_options(predicted, read_record(predicted)).engine_model)
    delay = parse_duration_ns(row["network_delay"], "")
    calibrated = {} if log is None else _calibrated(log, factor, delay, model, tuples)
    rows = []
    for name in (one for one in METRICS if one not in TEXTS):
        was = row.get(name)
        value = None if refused and name.startswith(_TIMED) else measured.get(name)
        better = calibrated.get(name)
        rows.append(
            {
                "metric": name, "predicted": was, "measured": value, "error": _error(was, value),
                "calibrated": better, "calibrated_error": _error(better, value),
            }
        )  # fmt: skip
    schema = {"metric": pl.String, **dict.fromkeys(list(rows[0])[1:], pl.Float64)}
    return Witness(pl.DataFrame(rows, schema=schema), factor, refused)


def _error(predicted: float | None, measured: float | None) -> float | None:
    if predicted is None or measured is None:
        return None
    if predicted == measured:
        return 0.0
    return (measured - predicted) / predicted if predicted else None


def _log(run: Path, names: tuple[str, ...]) -> dict[str, I64] | None:
    """Read columns of an assignment log in the order of the stream; None where there is none."""
    # Of a relative path Arrow would take what is before a colon for the scheme of a URL.
    parts = sorted((run / LOG).absolute().glob("part-*.parquet"))
    if not parts:
        return None
    try:
        table = pa.concat_tables([pq.read_table(part, columns=["seq", *names], partitioning=None) for part in parts])
    except (OSError, pa.ArrowException):
        raise DataError(f"{run / LOG} cannot be read", AGAIN) from None
    table = table.sort_by("seq")
    return {name: table[name].cast(pa.int64()).fill_null(-1).to_numpy() for name in names}


def _measured_tuples(run: Path) -> int:
    """Count the tuples of a run that are not warm-up."""
    return int(read_table(run, "windows")["tuples"].sum())


def _calibrated(
    log: Mapping[str, I64], factor: float, delay: int, model: MicroBatch | None, tuples: int
) -> dict[str, float]:
    """Predict once more, each service `factor` times as long: workers serve what they got first come, first served, or
    batch by batch.

    Of the last `tuples` of the stream, the others being warm-up. Nothing where not all tuples finished.
    """
    arrival, worker = log["arrival_ns"], log["worker"]
    if (log["finish_ns"] < 0).any() or not tuples:
        return {}
    service = np.rint((log["finish_ns"] - log["start_ns"]) * factor).astype(np.int64)
    if model is None:
        start = _starts(arrival + delay, worker, service)
    else:
        start = batch_ends(model, arrival, worker, service, delay) - service
    first = len(arrival) - tuples
    finish, arrival, start = (start + service)[first:], arrival[first:], start[first:]
    latency = np.sort(finish - arrival)
    makespan = int(finish.max() - arrival[0])

    def quantile(share: Fraction) -> float:
        return float(latency[max(-(-tuples * share.numerator // share.denominator), 1) - 1]) / 1e6

    return {
        "makespan_s": makespan / 1e9,
        "throughput_tps": tuples * 1e9 / makespan if makespan else 0.0,
        "latency_mean_ms": float(latency.mean()) / 1e6,
        **{
            f"latency_{name}_ms": quantile(Fraction(share))
            for name, share in (("p50", "0.5"), ("p95", "0.95"), ("p99", "0.99"), ("p999", "0.999"))
        },
        "latency_max_ms": float(latency[-1]) / 1e6,
        "backlog_max_ms": float((start - arrival).max() - delay) / 1e6,
    }


def _starts(reached: I64, worker: I64, service: I64) -> I64:
    """Return when services start that workers do in the order in which tuples reached them."""
    start = np.empty_like(reached)
    free: dict[int, int] = {}
    for i, (who, at, takes) in enumerate(zip(worker.tolist(), reached.tolist(), service.tolist(), strict=True)):
        start[i] = begins = max(free.get(who, 0), at)
        free[who] = begins + takes
    return start
