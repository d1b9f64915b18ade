"""The options of a run inside an engine: which engine, and how workers serve, checkpoints, batches."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgroup.base.errors import UsageError
from streamgroup.engine_runs.flink.find_python import FlinkPlace
from streamgroup.engine_runs.unsupported_options import BATCH, FLINK, STREAMING, Form
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.spark.options import SparkOptions

__all__ = ["ENGINES", "EngineOptions", "engine_options"]

ENGINES = {"spark": BATCH, "spark-streaming": STREAMING, "flink": FLINK}
# From when the last worker is ready to the first arrival.
_LEAD_NS = 3_000_000_000
# What says where Spark runs.
_OF_SPARK = ("master", "spark_conf", "driver_memory")
# Tuples of a batch, unless they are given.
_MICRO_BATCH = 1000


@dataclass(frozen=True)
class EngineOptions:
    """How a run uses an engine: workers `sleep` or `spin` as long as a service takes.

    With `flink` it is a job of Flink; with `micro_batch`, tuples of a batch, a Structured Streaming query, which goes
    on from `checkpoint` where there is one; else a job of Spark in two stages.
    """

    spark: SparkOptions | None = None
    service_mode: str = "sleep"
    lead_ns: int = _LEAD_NS
    micro_batch: int | None = None
    checkpoint: Path | None = None
    flink: FlinkPlace | None = None

    @property
    def name(self) -> str:
        """Return the name of the engine, as a user gives it."""
        if self.flink is not None:
            return "flink"
        return "spark" if self.micro_batch is None else "spark-streaming"

    @property
    def form(self) -> Form:
        """Return how the job runs."""
        return ENGINES[self.name]

    def place(self, options: ReplayOptions) -> SparkOptions:
        """Return where Spark runs: by default on this machine, with a slot for each worker and source."""
        return self.spark or SparkOptions(master=f"local[{max(options.workers, options.sources)}]")


def engine_options(
    engine: str, service_mode: str, given: Mapping[str, Any], spark: SparkOptions | None = None
) -> EngineOptions:
    """Make options of those that were `given`: `micro_batch`, `checkpoint`, `flink_python`; and of those of `spark`.

    UsageError for one of another engine, and for values that are none.
    """
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}", " or ".join(ENGINES))
    size, checkpoint, python = (given.get(name) for name in ("micro_batch", "checkpoint", "flink_python"))
    if python is not None and engine != "flink":
        raise UsageError("--flink-python is an option of Flink, and the engine is Spark", "add --engine flink")
    for flag, value in (("--micro-batch", size), ("--checkpoint", checkpoint)):
        if value is not None and engine != "spark-streaming":
            raise UsageError(
                f"{flag} is of a streaming query, and --engine {engine} runs no batches", "add --engine spark-streaming"
            )
    if engine == "flink":
        strange = [name for name in _OF_SPARK if given.get(name)]
        if strange:
            raise UsageError(
                f"{', '.join(strange)}: these are options of Spark, and the engine is Flink", "leave them out"
            )
        return EngineOptions(service_mode=service_mode, flink=FlinkPlace(None if python is None else os.fspath(python)))
    if engine == "spark":
        return EngineOptions(spark, service_mode)
    if size is not None and (not isinstance(size, int) or size < 1):
        raise UsageError(f"--micro-batch {size} is not a number of tuples, 1 or more", "use --micro-batch 1000")
    place = None if checkpoint is None else Path(checkpoint)
    return EngineOptions(spark, service_mode, micro_batch=size or _MICRO_BATCH, checkpoint=place)
