"""What D-Choices and its relatives share: a detector, and loads that each source counts for itself."""

from typing import Any

import numpy as np

from streamgroup.groupings._detector_parameter import start_detector
from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.hash_placement import candidate_words
from streamgroup.kernels.least_loaded_of_many import Cursors, make_cursors
from streamgroup.kernels.send_to_least_loaded import Loads, make_loads

__all__ = ["ENTRY_BYTES", "begun", "cursors_of", "entry_bytes_of", "moved"]

# A key or worker and its count.
ENTRY_BYTES = 16


def entry_bytes_of(detector: Any) -> int:
    """Return the nominal size of an entry that a detector holds."""
    return int(getattr(detector, "entry_bytes", ENTRY_BYTES))


def _load_entries(detector: Any, workers: int) -> int:
    """Return how many entries of its detector's size the loads of a source take, rounded up."""
    return -(-ENTRY_BYTES * workers // entry_bytes_of(detector))


def begun(params: Any, context: Context, *needed: str) -> dict[str, Any]:
    """Return the fields that all of them have at the start, with a detector that reports what is `needed`."""
    detector = start_detector(params, context, *needed)
    load_entries = _load_entries(detector, context.workers)
    load = np.zeros((context.sources, int(context.live[-1]) + 1), dtype=np.int64)
    return {
        "detector": detector,
        "loads": make_loads(load, context.live, context.candidates(2)),
        "choices": np.zeros(1, dtype=np.int64),
        "state_entries": np.full(context.sources, load_entries, dtype=np.int64),
        "detector_entries": detector.entries,
        "state_entry_bytes": entry_bytes_of(detector),
        "load_entries": load_entries,
        "workers": context.workers,
    }


def moved(state: Any, change: WorkersChange, context: Context) -> dict[str, Any]:
    """Return the fields that a change of workers changes: what was counted stays, theta follows the number of workers.

    Keys are hashed anew to the live workers; a joiner starts at the smallest load among those that were there.
    """
    loads: Loads = state.loads
    detector = state.detector.workers_changed(change, context)
    return {
        "detector": detector,
        "loads": make_loads(carry_loads(loads.load, change), change.live, context.candidates(2)),
        "detector_entries": detector.entries,
        "load_entries": _load_entries(detector, context.workers),
        "workers": context.workers,
    }


def cursors_of(context: Context, most: int) -> Cursors:
    """Make ready to look for the least loaded of up to `most` candidates of a key."""
    words = candidate_words(context.hash_lo, context.hash_hi, context.hash_seed)
    return make_cursors(words, context.sources, most, modulo=context.params.modulo())
