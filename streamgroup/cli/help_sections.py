"""The sections in which help lists options, by what they are about."""

from collections.abc import Iterable

__all__ = ["section_of", "sections_in_order"]

_REST = "Options"
_SECTIONS = {
    "Columns": (
        "time", "key", "cost", "value", "weight", "delimiter", "header", "encoding", "multiline", "cost_unit",
        "time_format", "timezone", "null_values",
    ),
    "Rows": (
        "where", "limit", "since", "until", "head", "sample_keys", "split_words", "stopwords", "null_keys",
        "max_rejects",
    ),
    "Load": (
        "sources", "source_assignment", "arrivals", "spread_ties", "speedup", "max_pending", "service", "key_cost",
        "service_distribution", "network_delay", "control_delay", "max_p99", "engine_model",
    ),
    "Stages": (
        "source_service", "combine", "combine_cost", "state_cost", "memory_limit", "aggregators", "aggregator_service",
        "aggregator_grouping", "aggregate_every", "app",
    ),
    "Workers and failures": (
        "capacity", "slowdown", "slowdown_at", "speed_jitter", "queue_capacity", "when_full", "join", "leave", "crash",
        "redeliver", "baseline", "service_mode",
    ),
    "Seeds and keys": ("seed", "seeds", "hash_seed", "key_type"),
    "Measuring": ("window", "warmup", "hot_threshold", "top_keys"),
    "Where it runs": ("engine", "micro_batch", "checkpoint", "master", "remote", "spark_conf", "driver_memory", "jobs"),
    "Output": (
        "output", "each", "if_missing", "overwrite", "log", "checksum", "dry_run", "form", "json", "fail", "config",
        "quiet", "verbose", "debug", "help",
    ),
}  # fmt: skip
_OF_OPTION = {name: section for section, names in _SECTIONS.items() for name in names}


def section_of(option: str) -> str:
    """Return the section of an option, by its name with `_`."""
    return _OF_OPTION.get(option, _REST)


def sections_in_order(found: Iterable[str]) -> list[str]:
    """Put sections in the order of help: what a command is about first, what it prints last."""
    return sorted(found, key=[_REST, *_SECTIONS].index)
