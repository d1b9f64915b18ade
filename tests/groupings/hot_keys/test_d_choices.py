"""D-Choices from a source's first tuple on; what it and W-Choices need in memory against the formula of 001 IV-B."""

from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from streamgroup.base.compiling.plain_python import view
from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.groupings.contexts_and_worker_changes import started
from tests.naive.kernels.optimal_choices import find_d, shares_of_counts
from tests.traces_by_hand import write_trace


def zipf(directory: Path, tuples: int, keys: int, exponent: float) -> Trace:
    shares = np.arange(1.0, keys + 1) ** -exponent
    drawn = np.random.default_rng(1).choice(keys, tuples, p=shares / shares.sum())
    return open_trace(write_trace(directory / "t", [(10 * i, b"k%d" % key, None) for i, key in enumerate(drawn)]))


def test_by_default_as_balanced_as_with_d_at_every_hot_tuple(tmp_path: Path) -> None:
    """Many sources with few tuples each: nearly all of the run is their start."""
    trace = zipf(tmp_path, 6000, 1000, 2.0)
    found = {
        text: summary(
            replay(
                trace,
                ReplayOptions(text, workers=20, sources=20, arrivals="saturate", service="1ms", max_pending=20),
                interpreted=True,
            )
        )
        for text in ("d_choices", "d_choices:recompute_every=1", "d_choices:recompute_every=300")
    }
    default, always, seldom = ([row["throughput_tps"], row["imbalance_mean"]] for row in found.values())
    assert default == pytest.approx(always, rel=0.01)
    assert seldom[0] < 0.5 * always[0]
    assert seldom[1] > 10 * always[1]


@pytest.mark.parametrize("grouping", ["w_choices", "d_choices"])
def test_memory_by_the_head_and_d_at_the_end(tmp_path: Path, grouping: str) -> None:
    """d x hot keys + 2 x the others, however many keys were hot at the start. Keys near theta differ."""
    n, theta = 20, Fraction(1, 100)
    trace = zipf(tmp_path, 8000, 400, 1.0)
    outcome = replay(trace, ReplayOptions(grouping, n, sources=2), interpreted=True)
    counts = sorted(outcome.count.tolist(), reverse=True)
    head = [count for count in counts if count >= theta * sum(counts)]
    d = n if grouping == "w_choices" else find_d(shares_of_counts(head, sum(counts)), n)
    formula = sum(min(count, d if at < len(head) else 2) for at, count in enumerate(counts))
    estimate = summary(outcome)["memory_estimate"]
    assert estimate == pytest.approx(formula, rel=0.03)
    # The most that each key was ever given would be far more.
    assert outcome.choices_max == n
    assert formula < 0.5 * sum(min(count, n) for count in counts)


class Silent(NamedTuple):
    """A detector that takes every key for hot, and reports none of them."""

    total: NDArray[np.int64]
    held: NDArray[np.int64]
    asked: NDArray[np.int64]

    def detect(self, source: int, key: int, now: int) -> int:
        self.total[source] += 1
        return 1

    def hottest(self, source: int, estimates: Any) -> int:
        self.asked[0] += 1
        return 0


@pytest.mark.parametrize(("every", "times"), [(1, 640), (10, 64), (0, 189)])
def test_a_detector_that_reports_no_hot_key_is_asked_again_when_d_is_due_again(every: int, times: int) -> None:
    """To find none it may look through a large table. d stays."""
    silent = Silent(*np.zeros((3, 1), dtype=np.int64))
    state = started(f"d_choices:recompute_every={every}", 9, sources=1)
    code = view(state._replace(detector=silent))
    for _ in range(640):
        code.choose(0, 7, 0)
    assert silent.asked[0] == times
    assert state.d[0] == 2
