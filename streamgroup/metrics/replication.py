"""Replication of a grouping: (worker, key) pairs, the estimates of the papers, partial results to merge."""

import numpy as np

from streamgroup.metrics.exact_ratios import I64, integers, ratio
from streamgroup.metrics.metric_names import Number
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["measure"]


def measure(outcome: Outcome) -> dict[str, Number]:
    """Return the replication family (003 eq. 8; 002 section I; 001 section IV-B).

    `memory_estimate` is None where the choices depend on the key and their number is unknown. Where each worker
    sends one partial per key at the end, `aggregation_messages` are the replicas.
    """
    held = integers(outcome.worker.keys)
    replicas = sum(held)
    choices = outcome.key_choices if outcome.choices_per_key is None else outcome.choices_per_key
    messages = outcome.aggregation_messages
    return {
        "replicas": replicas,
        "replication_factor": ratio(replicas, outcome.keys),
        "state_entries_max": max(held),
        "memory_estimate_pkg": _estimate(outcome, 2),
        "memory_estimate_sg": _estimate(outcome, outcome.workers),
        "memory_estimate": None if choices is None else _estimate(outcome, choices),
        "aggregation_messages": replicas if messages is None else messages,
        "remapped_replicas": outcome.remapped_replicas,
    }


def _estimate(outcome: Outcome, choices: int | I64) -> int:
    """Sum min(f_k, choices) over the keys: the most pairs there can be."""
    return int(np.minimum(outcome.count, choices).sum())
