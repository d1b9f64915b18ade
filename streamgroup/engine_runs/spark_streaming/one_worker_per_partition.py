"""Grouping keys that Spark puts into the partitions where they belong: each worker has a task of its own."""

from itertools import count

from streamgroup.engines.keys.typed_key_values import Int
from streamgroup.engines.spark_sql import spark_sql_partition

__all__ = ["partition_labels"]


def partition_labels(wanted: int, partitions: int) -> list[int]:
    """Return so many ints, the i-th the smallest unused one that Spark's hash puts into partition i modulo them."""
    left: list[list[int]] = [list(range(place, wanted, partitions))[::-1] for place in range(partitions)]
    found = [0] * wanted
    missing = wanted
    for label in count():
        if not missing:
            break
        waiting = left[spark_sql_partition(Int(label), partitions)]
        if waiting:
            found[waiting.pop()] = label
            missing -= 1
    return found
