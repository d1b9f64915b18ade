"""A run with a combiner: merged tuples go through the event-driven simulation, and their originals are accounted."""

from collections.abc import Callable, Generator
from typing import NamedTuple

from streamgroup.replay.accounting.event_accounting import Measuring
from streamgroup.replay.input.make_arrivals import tuples_before
from streamgroup.replay.input.prefetch import Ready
from streamgroup.replay.scenario.plan import Plan
from streamgroup.replay.simulation.chunk_driven import Setup
from streamgroup.replay.simulation.event_driven import EventDriven
from streamgroup.replay.simulation.source_server import make_servers
from streamgroup.replay.stages.combiner import Combiner, Members, merged_before
from streamgroup.replay.stages.held_keys_of_run import MergedWindows
from streamgroup.replay.stages.originals_of_merged import Originals
from streamgroup.traces.trace import Trace

__all__ = ["Combining", "make_combining"]


class Combining(NamedTuple):
    """The simulation of merged tuples, and what merges them; the first `warmup` of these are not measured.

    `windows` adds to them the windows that workers hold keys for, None where these cost nothing or there are none.
    """

    simulation: EventDriven
    combiner: Combiner
    warmup: int
    windows: MergedWindows | None

    @property
    def combined(self) -> int:
        """Count the measured merged tuples."""
        return self.combiner.units - self.warmup

    def chunks(self, stream: Generator[Ready]) -> Generator[Ready]:
        """Yield the merged tuples of a stream."""
        merged = self.combiner.chunks(stream)
        return merged if self.windows is None else self.windows.chunks(merged)


def make_combining(
    setup: Setup,
    trace: Trace,
    plan: Plan,
    measuring: Measuring,
    warmup: int,
    read: Callable[[], Generator[Ready]],
    seen: Callable[[Ready], None],
) -> Combining:
    """Make what simulates a run with a combiner; `warmup` tuples of the trace are not measured.

    `read` reads the stream, `seen` gets its chunks as the combiner takes them.
    """
    rule, costs = plan.combine, plan.costs
    assert rule is not None
    constant = 1.0 if costs.by_worker is not None else costs.constant_ns or 0
    originals = Originals(measuring, warmup)

    def combiner(seen: Callable[[Ready], None], members: Callable[[Members], None]) -> Combiner:
        base = setup.edge.source_ns
        servers = None if base is None else make_servers(base)
        return Combiner(rule, plan.options.sources, servers, constant, warmup, seen=seen, members=members)

    warm = merged_before(combiner, read(), warmup) if warmup else 0
    simulation = EventDriven(
        setup, plan.queues, (warm, -1), originals, round_robin=False, served=True,
        arrived=lambda now: tuples_before(trace, plan, now),
    )  # fmt: skip
    held = setup.edge.held
    if held is None or plan.options.aggregate_every is None:
        return Combining(simulation, combiner(seen, originals.expect), warm, None)
    windows = MergedWindows(held)

    def seen_here(ready: Ready) -> None:
        windows.see(ready)
        seen(ready)

    def expect(members: Members) -> None:
        windows.expect(members)
        originals.expect(members)

    return Combining(simulation, combiner(seen_here, expect), warm, windows)
