"""What detectors with a sketch share: the size of the sketch, the cells of keys, and the heap of hot keys."""

from math import ceil, e
from typing import Any

import numpy as np
from pydantic import Field

from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._share_threshold import share_of
from streamgroup.groupings.detectors._threshold import LARGEST_CAPACITY, TableParams
from streamgroup.groupings.protocol import Context
from streamgroup.kernels.compiling.kernel_decorators import njit
from streamgroup.kernels.counts.count_min import cells_of_keys
from streamgroup.kernels.ordered.heap_of_largest_keys import cells_taken, make_key_heap
from streamgroup.kernels.ordered.top_k import sort_descending

__all__ = ["SketchParams", "hot_values", "sketch_of"]


class SketchParams(TableParams):
    """The threshold, the keys in the heap, and the size of a sketch."""

    capacity: int = Field(
        default=0,
        ge=0,
        le=LARGEST_CAPACITY,
        description="keys in the heap of a source; 0: 2/theta; fewer miss hot keys",
    )
    rows: int = Field(default=4, ge=1, le=16, description="rows of the sketch: a large error has probability e^-rows")
    columns: int = Field(
        default=0,
        ge=0,
        le=LARGEST_CAPACITY,
        description="cells of a row; 0: 2e/theta; with few, cold keys count as hot",
    )

    def width(self, workers: int) -> int:
        """Return the cells of a row."""
        share = share_of(self.theta, workers)
        return self.columns or min(ceil(2 * e * share.denominator / share.numerator), LARGEST_CAPACITY)

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """In a sketch that is too small, cold keys share cells with hot ones, and in a small heap hot keys are lost."""
        share = share_of(self.theta, workers)
        least, most = ceil(e * share.denominator / share.numerator), ceil(1 / share)
        columns, places = self.width(workers), self.places(workers)
        doubts = super().doubts(workers, sources, keys)
        if columns < min(least, keys):
            doubts.append(f"columns={columns} is under e/theta = {least}, so that cold keys can pass for hot")
        if places < min(most, keys):
            doubts.append(f"capacity={places} is under 1/theta = {most}, so that hot keys can be missed")
        return doubts


def sketch_of(params: SketchParams, context: Context, dtype: Any) -> dict[str, Any]:
    """Return the fields of an empty sketch and heap in each source; UsageError if they would be too large."""
    columns, places = params.width(context.workers), min(params.places(context.workers), max(1, context.keys))
    sources, cells = context.sources, params.rows * columns
    fits(
        sources * cells + cells_taken(sources, places),
        MOST_CELLS,
        f"a sketch of {params.rows} x {columns} cells and a heap of {places} keys at each of {sources} sources",
        "set fewer columns or a lower capacity, or raise theta",
    )
    # Two cells are as large as an entry.
    held = (cells + 1) // 2
    return {
        "cells": np.zeros((sources, cells), dtype=dtype),
        "cell_of": cells_of_keys(context.hash_lo, params.rows, columns),
        "heap": make_key_heap(sources, context.keys, places, dtype),
        "held": np.full(sources, held, dtype=np.int64),
        "entries": np.full(1, sources * held, dtype=np.int64),
        "most": places,
    }


@njit
def hot_values(heap: Any, source: Any, denominator: Any, least: Any, found: Any) -> Any:
    """Fill `found` with the values v for which v x denominator >= least, largest first; return how many there are."""
    size = np.int64(0)
    for place in range(heap.used[source]):
        value = heap.value[source, place]
        if value * denominator >= least:
            found[size] = value
            size += 1
    sort_descending(found, size)
    return size
