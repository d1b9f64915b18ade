"""The cells of a sweep: all combinations of the values in its specification, each once."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from streamgroup.base.errors import UsageError
from streamgroup.replay.scenario.arrivals_option import parse_arrivals
from streamgroup.replay.scenario.capacity_file import read_capacity, with_capacity
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.scenario.seeds_used import seeds_used
from streamgroup.study.rate_search import is_searched
from streamgroup.study.sweep.cell import Cell, make_cell
from streamgroup.study.sweep.sweep_spec import DEFAULTS, MOST_CELLS, Spec
from streamgroup.traces.trace import Trace

__all__ = ["cells_of", "groupings_without_draws"]

_CHANGE = "add --join, --leave or --crash"


def cells_of(spec: Spec, traces: Mapping[str, Trace]) -> tuple[list[Cell], int]:
    """Return the cells, each once, traces first and seeds last, and how many more combinations are the same as those.

    A cell whose results do not depend on the seed has the first seed only; the others do not count as the same, see
    `groupings_without_draws`. `traces` are the open ones by path. A baseline is for cells whose workers change.
    UsageError where there are none of these, for a capacity file that is wrong, and for more than 100,000 cells.
    """
    combinations: Sequence[Sequence[Any]] = (
        spec.traces, spec.arrivals, spec.capacity, spec.sources, spec.groupings, spec.workers, spec.seeds,
    )  # fmt: skip
    count = 1
    for values in combinations:
        count *= len(values)
    if count > MOST_CELLS:
        raise UsageError(f"the sweep has {count} cells, and at most {MOST_CELLS} are taken", "list less")
    files = {path: read_capacity(path) for path in spec.capacity if path is not None}
    found: dict[str, Cell] = {}
    left_out = 0
    for trace, arrivals, capacity, sources, grouping, workers, seed in itertools.product(*combinations):
        options = ReplayOptions(
            grouping=grouping, workers=workers, sources=sources, arrivals=arrivals, capacity=capacity, seed=seed,
            **spec.options,
        )  # fmt: skip
        options = with_capacity(options, files.get(capacity))
        if not is_searched(options):
            # It is for the cells that search their rate.
            options = dataclasses.replace(options, max_p99=None)
        if parse_arrivals(arrivals).name != "saturate":
            options = dataclasses.replace(options, max_pending=DEFAULTS.max_pending)
        if seed != spec.seeds[0] and _is_fixed(spec, options):
            left_out += 1
            continue
        changes = bool(options.join or options.leave or options.crash)
        cell = make_cell(traces[trace], options, baseline=spec.baseline and changes)
        found.setdefault(cell.id, cell)
    if spec.baseline and not any(cell.baseline for cell in found.values()):
        raise UsageError("--baseline runs cells without a change of workers, too, and none has one", _CHANGE)
    return list(found.values()), count - left_out - len(found)


def groupings_without_draws(spec: Spec, cells: Sequence[Cell]) -> list[str]:
    """Name the groupings, each once, with cells that run under the first of several seeds only: nothing is drawn."""
    if len(set(spec.seeds)) < 2:
        return []
    fixed = (cell.options for cell in cells if _is_fixed(spec, cell.options))
    return list(dict.fromkeys(select(options.grouping).text for options in fixed))


def _is_fixed(spec: Spec, options: ReplayOptions) -> bool:
    """Return whether a cell is the same under every seed of a sweep."""
    used = seeds_used(vars(options))
    return "seed" not in used and ("hash_seed" not in used or "hash_seed" in spec.options)
