"""What an engine cannot do of what a replay can: refused with the reason, before anything starts."""

from typing import NamedTuple

from streamgroup.base.errors import UsageError
from streamgroup.groupings._control_server_time import service_ns
from streamgroup.replay.online.decider import Decider
from streamgroup.replay.scenario.arrivals_option import SEARCHED
from streamgroup.replay.scenario.plan import Plan

__all__ = ["BATCH", "FLINK", "MODES", "STREAMING", "Form", "check_slots", "refuse"]

MODES = ("sleep", "spin")


class Form(NamedTuple):
    """How a job runs: in which engine, what its workers are, why they do not change, and why queues have no bound."""

    engine: str
    tasks: str
    unchanging: str
    unbounded: str


BATCH = Form(
    "Spark", "tasks of a barrier stage", "the tasks of Spark's barrier stage start and end together",
    "Spark exchanges all tuples before workers start",
)  # fmt: skip
STREAMING = Form(
    "Spark", "tasks of one stage", "a query of Spark's keeps its partitions for as long as it lives",
    "a batch is complete when Spark's workers begin with it",
)  # fmt: skip
FLINK = Form(
    "Flink", "subtasks of one job", "the subtasks of Flink's job start and end together",
    "those of Flink are network buffers, which hold bytes",
)  # fmt: skip


def refuse(plan: Plan, service_mode: str, form: Form = BATCH, *, one_batch: bool = False) -> None:
    """Raise UsageError for the first option that an engine run of this form does not have.

    With `one_batch`, a batch of a streaming query holds the whole trace.
    """
    options, engine = plan.options, form.engine
    if service_mode not in MODES:
        raise UsageError(f"--service-mode: there is no mode {service_mode!r}", "sleep or spin")
    if plan.arrivals.name == "saturate":
        raise UsageError(
            f"--arrivals saturate holds sources back by their workers, and nothing flows back to {engine}'s sources",
            "use --arrivals utilization=0.9",
        )
    for flag, value in (("--join", options.join), ("--leave", options.leave), ("--crash", options.crash)):
        if value:
            raise UsageError(f"{flag} changes the workers, and {form.unchanging}", "simulate it with replay")
    beside = {
        "--source-service": plan.source_service, "--combine": plan.combine, "--aggregators": plan.aggregators,
        "--state-cost or --memory-limit": plan.state, "--arrivals max": plan.arrivals.name in SEARCHED or None,
    }  # fmt: skip
    for flag, stage in beside.items():
        if stage is not None:
            raise UsageError(f"{flag} is simulated, and no part of a run in {engine}", "simulate it with replay")
    if plan.app is not None and plan.app.text != "count":
        raise UsageError(f"--app {plan.app.text}: workers in {engine} count by key", "use --app count, or replay")
    if plan.queues.capacity:
        raise UsageError(f"--queue-capacity bounds a worker's queue, and {form.unbounded}", "simulate it with replay")
    if plan.speeds.by_time and len(plan.speeds.begins) > 1:
        raise UsageError(
            "--slowdown-at a time: a source, which knows what a service takes, does not know when it will start",
            "give a tuple or a share, as in --slowdown-at 50%=1,2",
        )
    if plan.engine_model is not None:
        raise UsageError("--engine-model is of a simulation, and this run is measured", "leave it out")
    for name, value in plan.selection.params:
        # What a grouping's control servers take; their parameters are all called so.
        if name.endswith("_service") and service_ns(value):
            raise UsageError(f"{name}: control servers are simulated, and no part of a run in {engine}", "leave it out")
    # As a source does it: this refuses groupings that cannot decide alone.
    decider = Decider(options, 0, interpreted=None)
    if decider.grouping.has_feedback:
        _refuse_feedback(plan, form, one_batch=one_batch)


def _refuse_feedback(plan: Plan, form: Form, *, one_batch: bool) -> None:
    """Refuse a grouping that listens to its workers where nothing flows back, and a delay that is not measured."""
    text, options = plan.selection.text, plan.options
    if form is not STREAMING:
        other = "-g fish:hwa=false" if plan.selection.name == "fish" else "a grouping without feedback"
        where = " in a job of two stages" if form is BATCH else ""
        raise UsageError(
            f"-g {text} listens to its workers, and nothing flows back to {form.engine}'s sources{where}",
            f"use --engine spark-streaming, whose sources get the workers' reports with the next batch, or {other}",
        )
    if options.control_delay is not None and plan.control_delay:
        raise UsageError(
            f"--control-delay {options.control_delay}: -g {text} listens to its workers, and their reports take the "
            "time that they take, which is measured",
            "leave it out",
        )
    if one_batch:
        raise UsageError(
            f"-g {text} listens to its workers, and --micro-batch holds the whole trace: workers report behind their "
            "batch, and no source would hear of it",
            "use a smaller --micro-batch, a tenth of the trace for example",
        )


def check_slots(workers: int, slots: int, place: str, form: Form = BATCH) -> None:
    """Refuse more workers than can run at once; UsageError."""
    if workers > slots:
        raise UsageError(
            f"{workers} workers run at once, as {form.tasks}, and {place} has {slots} slots",
            f"use --master 'local[{workers}]', a cluster with as many cores, or fewer workers",
        )
