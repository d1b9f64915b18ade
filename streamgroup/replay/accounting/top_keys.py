"""The most frequent keys of a run, for its table of keys."""

import numpy as np
from numpy.typing import NDArray

from streamgroup.replay.accounting.outcome import TopKey
from streamgroup.replay.accounting.recorder import Recorder
from streamgroup.traces.trace import Trace

__all__ = ["top_keys"]


def top_keys(trace: Trace, count: NDArray[np.int64], most: int, recorder: Recorder) -> list[TopKey]:
    """Return the `most` most frequent keys of those that came at all; `count` int64[keys] is how often each came."""
    order = np.argsort(-count, kind="stable")[: min(most, trace.keys)].tolist()
    order = [key for key in order if count[key] > 0]
    hot = recorder.hotness
    return [
        TopKey(key, text, int(count[key]), recorder.pairs.workers_of(key), None if hot is None else hot.was_hot(key))
        for key, text in zip(order, trace.key_texts(order), strict=True)
    ]
