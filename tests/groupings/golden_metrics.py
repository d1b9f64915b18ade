"""Metrics of every grouping over a real stream, compared with those that scripts/renew-golden-metrics keeps."""

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

from streamgroup.metrics.run_tables import summary
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import family
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import Trace, open_trace
from tests.traces_by_hand import write_trace

__all__ = ["GOLDEN", "measured", "real_trace"]

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden.json"
# Edits of Wikipedia pages by users: 1.5 days of 2018, of which the users are the keys.
RAW = ROOT / "traces" / "raw" / "jodie-wikipedia" / "wikipedia.tsv.gz"
TUPLES = 20_000


def real_trace(directory: Path) -> Trace:
    """The first tuples of the real stream, as a trace."""
    with gzip.open(RAW) as lines:
        rows = [line.split(b"\t") for line in itertools.islice(lines, TUPLES)]
    tuples = [(round(float(at) * 1_000_000), user, None) for _, user, _, at in rows]
    return open_trace(write_trace(directory / "real.trace", tuples))


def measured(trace: Trace) -> dict[str, dict[str, Any]]:
    """Replay it through every grouping with its defaults, but for times that are short for so small a stream."""
    # Five sources deal 20,000 tuples at 80 % of 16 workers' capacity in 1.6 s.
    windows = "window=200ms,slide=50ms"
    short = {
        "cam": windows,
        "cm": windows,
        "consistent_grouping": "window=50ms",
        "dagreedy": windows,
        "dalton": windows,
        "dynamic_kg": "warmup=50ms,teenage_period=50ms,old_period=200ms,check_interval=100ms",
        "fish": "interval=100ms",
        "posg": "batch=64,mu=0.5",
        "rivetti_dkg": "learning_length=4000",
    }
    found = {}
    for name in family():
        text = f"{name}:{short[name]}" if name in short else name
        options = ReplayOptions(grouping=text, workers=16, sources=5, arrivals="utilization=0.8")
        row = summary(replay(trace, options))
        found[text] = json.loads(json.dumps({metric: value for metric, value in row.items() if value is not None}))
    return found
