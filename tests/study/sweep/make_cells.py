"""Cells of sweeps for tests."""

from typing import Any

from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.sweep.cell import Cell, make_cell
from streamgroup.study.sweep.schedule import open_traces


def cell(trace: str, grouping: str = "pkg", workers: int = 3, *, baseline: bool = False, **more: Any) -> Cell:
    return make_cell(
        open_traces([trace])[trace], ReplayOptions(grouping=grouping, workers=workers, **more), baseline=baseline
    )
