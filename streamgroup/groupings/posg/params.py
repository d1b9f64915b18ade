"""Parameters of POSG."""

from typing import Literal, Self

from pydantic import Field, model_validator

from streamgroup.groupings._control_server_time import ServiceTime
from streamgroup.groupings._time_parameters import Delay
from streamgroup.groupings.posg.count_min import sketch_size
from streamgroup.groupings.protocol import GroupingParams

__all__ = ["Params"]


class Params(GroupingParams):
    """Parameters of POSG, with the symbols of 004."""

    batch: int = Field(default=1024, ge=1, le=1 << 30, description="tuples that a worker executes between checks (N)")
    mu: float = Field(
        default=0.05, ge=0, le=1e9, description="relative change of the sketch up to which it is stable (mu)"
    )
    rows: int = Field(default=4, ge=1, le=64, description="rows of a sketch (r); or give delta")
    columns: int = Field(default=54, ge=1, le=1 << 16, description="columns of a sketch (c); or give eps")
    eps: float | None = Field(
        default=None, ge=5e-5, le=3, description="precision of a sketch (epsilon): ceil(e/eps) columns"
    )
    delta: float | None = Field(
        default=None, ge=1e-19, lt=1, description="probability of a worse estimate (delta): ceil(log2(1/delta)) rows"
    )
    reply_delay: Delay = Field(default=None, description="time a worker's reply takes; the control delay if not given")
    matrix_delay: Delay = Field(default=None, description="time that sketches take; the control delay if not given")
    message_service: ServiceTime = Field(
        default="0", description="time that a server takes for each sketch and reply on its way; 0: there is none"
    )
    sync: Literal["finish", "exec"] = Field(
        default="finish",
        description="what C_op is at a marker: finish (the time, as the authors' code has it) or exec (time executed)",
    )
    stability: Literal["outer", "skip_empty", "literal"] = Field(
        default="outer",
        description="how eta is taken: outer (|sum|/sum), skip_empty (over cells in the snapshot), literal (over all)",
    )
    resync_windows: int = Field(
        default=0,
        ge=0,
        le=1 << 16,
        description="batches of each worker in RUN after which a source synchronises; 0 never",
    )
    unseen: Literal["mean", "zero"] = Field(
        default="mean",
        description="estimate of an item that no tuple was sketched of (F = 0): mean (of all), or zero (authors' code)",
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        for precise, size in (("eps", "columns"), ("delta", "rows")):
            if getattr(self, precise) is not None and size in self.model_fields_set:
                raise ValueError(f"{precise} and {size} are two ways to size a sketch: give one")
        return self

    def size(self) -> tuple[int, int]:
        """Return the rows and columns of a sketch."""
        rows, columns = sketch_size(self.eps or 1.0, self.delta or 0.5)
        return (
            self.rows if self.delta is None else rows,
            self.columns if self.eps is None else columns,
        )

    def facts(self, workers: int) -> dict[str, int | float]:
        """Return the rows and columns that follow from delta and epsilon."""
        rows, columns = self.size()
        derived = {"sketch_rows": (self.delta, rows), "sketch_columns": (self.eps, columns)}
        return {name: size for name, (given, size) in derived.items() if given is not None}

    def seeds_used(self) -> tuple[str, ...]:
        """The columns of sketches take no seed."""
        return ()

    def choices_per_key(self, workers: int) -> int:
        """Any key may go to any worker."""
        return workers

    def default_sources(self) -> int:
        """The paper has one scheduler."""
        return 1

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """Each new sketch makes every source place a tuple on each worker, from the lowest id on."""
        doubts = super().doubts(workers, sources, keys)
        if sources > 1:
            doubts.append(
                f"{sources} sources: the paper has one scheduler, and of several none knows what the others have sent "
                "since the last synchronisation, so that all prefer the same workers; try --sources 1"
            )
        if 2 * self.batch < workers * sources:
            doubts.append(
                f"batch={self.batch}: sketches may come faster than {sources} sources place a tuple on each of "
                f"{workers} workers, which each sketch makes them begin anew, so that low ids get more; raise batch"
            )
        return doubts

    def needs_every_delivery(self) -> bool:
        """A marker is found by counting the tuples that were sent and those executed."""
        return True
