"""Jobs to Spark tasks: small ones share a task, so that a thousand small files do not cost a thousand starts."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from streamgroup.spark.errors import errors_as_text

__all__ = ["groups", "run_all"]

J = TypeVar("J")
R = TypeVar("R")


def groups(jobs: Sequence[J], weights: Iterable[int], least: int) -> list[list[J]]:
    """Put jobs that follow each other together until a group weighs at least `least`."""
    made: list[list[J]] = []
    weight = least
    for job, own in zip(jobs, weights, strict=True):
        if weight >= least:
            made.append([])
            weight = 0
        made[-1].append(job)
        weight += own
    return made


def _work(function: Callable[[J], R], jobs: list[J]) -> list[R]:
    with errors_as_text():
        return [function(job) for job in jobs]


def run_all(
    context: Any, function: Callable[[J], R], jobs: Sequence[J], weights: Iterable[int] | None = None, least: int = 1
) -> list[R]:
    """Run a function on all jobs in Spark tasks; results come in the order of the jobs, and to the driver.

    Without weights each job is a task of its own. Errors of ours come out of Spark in a form that the session mends.
    """
    made = groups(jobs, weights if weights is not None else [least] * len(jobs), least)
    found: list[list[R]] = context.parallelize(made, len(made)).map(partial(_work, function)).collect()
    return [result for results in found for result in results]
