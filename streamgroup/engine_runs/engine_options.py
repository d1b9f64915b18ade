"""How a run uses an engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgroup.base.errors import UsageError
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.spark.options import SparkOptions

__all__ = ["ENGINES", "EngineOptions", "engine_options"]

ENGINES = ("spark", "spark-streaming")
# From when the last worker is ready to the first arrival.
_LEAD_NS = 3_000_000_000
# Tuples of a batch, unless they are given.
_MICRO_BATCH = 1000


@dataclass(frozen=True)
class EngineOptions:
    """How a run uses an engine: workers `sleep` or `spin` as long as a service takes.

    With `micro_batch`, tuples of a batch, it is a Structured Streaming query, which goes on from `checkpoint` where
    there is one; without, a job in two stages.
    """

    spark: SparkOptions | None = None
    service_mode: str = "sleep"
    lead_ns: int = _LEAD_NS
    micro_batch: int | None = None
    checkpoint: Path | None = None

    @property
    def name(self) -> str:
        """Return the name of the engine, as a user gives it."""
        return ENGINES[self.micro_batch is not None]

    def place(self, options: ReplayOptions) -> SparkOptions:
        """Return where Spark runs: by default on this machine, with a slot for each worker and source."""
        return self.spark or SparkOptions(master=f"local[{max(options.workers, options.sources)}]")


def engine_options(
    engine: str, service_mode: str, given: Mapping[str, Any], spark: SparkOptions | None = None
) -> EngineOptions:
    """Make options of those that were `given`, `micro_batch` and `checkpoint`; UsageError where they are not fit."""
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}", " or ".join(ENGINES))
    size, checkpoint = given.get("micro_batch"), given.get("checkpoint")
    if engine == ENGINES[0]:
        for flag, value in (("--micro-batch", size), ("--checkpoint", checkpoint)):
            if value is not None:
                raise UsageError(
                    f"{flag} is of a streaming query, and --engine spark runs a job in two stages",
                    "add --engine spark-streaming",
                )
        return EngineOptions(spark, service_mode)
    if size is not None and (not isinstance(size, int) or size < 1):
        raise UsageError(f"--micro-batch {size} is not a number of tuples, 1 or more", "use --micro-batch 1000")
    place = None if checkpoint is None else Path(checkpoint)
    return EngineOptions(spark, service_mode, micro_batch=size or _MICRO_BATCH, checkpoint=place)
