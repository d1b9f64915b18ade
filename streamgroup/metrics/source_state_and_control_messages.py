"""What a grouping keeps in its sources, and its control messages: entries, bytes and the servers' utilization."""

from streamgroup.metrics.exact_ratios import ratio
from streamgroup.metrics.makespan_and_throughput import makespan_ns
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the largest state of one source, the detector's, and the control traffic (002 section V, 004 thm. 3.3).

    The bytes are entries x the nominal size that the grouping states. The detector's are the most at any window's end.
    """
    entries, size = outcome.source_state_entries, outcome.state_entry_bytes
    at_ends = outcome.window.detector_entries
    detector = None if at_ends is None or not len(at_ends) else int(at_ends.max())
    octets, work = outcome.detector_entry_bytes, outcome.control_work_ns
    return {
        "source_state_entries": entries,
        "source_state_bytes": None if entries is None or size is None else entries * size,
        "detector_entries": detector,
        "detector_bytes": (
            None if detector is None or octets is None else detector * octets + outcome.detector_fixed_bytes
        ),
        "control_messages": outcome.control_messages,
        "control_bytes": outcome.control_bytes,
        "control_utilization_max": None if work is None else ratio(work, makespan_ns(outcome)),
    }
