"""The least of many values that change one at a time: a tournament, O(log n) a change and O(1) to look.

`tree` is [rows, 2 P] of one number type, P a power of two: the leaves of row r are tree[r, P + i], each inner node k
holds the smaller of nodes 2k and 2k + 1, and node 1 the least of all. `winner` int64[rows, 2 P] holds the leaf that
each node's value comes from; equal values: the lower leaf. Leaves that do not take part hold the largest value there
is.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.compiling.kernel_decorators import njit

__all__ = ["leaves", "make_tournament", "play", "set_leaf", "set_ordered_leaf"]


def leaves(count: int) -> int:
    """Return P for `count` values: the least power of two that is not less, and at least 2."""
    return max(2, 1 << (count - 1).bit_length())


def make_tournament(values: NDArray[Any], taking_part: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Make tree and winners for `values` [rows, count], of which only the places `taking_part` can win."""
    rows, count = values.shape
    size = leaves(count)
    never = np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max
    tree = np.full((rows, 2 * size), never, dtype=values.dtype)
    tree[:, size + taking_part] = values[:, taking_part]
    winner = np.zeros((rows, 2 * size), dtype=np.int64)
    winner[:, size:] = np.arange(size)
    for row in range(rows):
        call(play, tree, winner, row)
    return tree, winner


@njit
def play(tree: Any, winner: Any, row: Any) -> None:
    """Play all matches of a row anew, after its leaves were set."""
    for node in range(tree.shape[1] // 2 - 1, 0, -1):
        _match(tree, winner, np.uint64(row), np.uint64(node))


@njit(forceinline=True)
def _match(tree: Any, winner: Any, row: Any, node: Any) -> None:
    left = node << np.uint64(1)
    right = left | np.uint64(1)
    # Without a branch: who wins is not predictable.
    other = tree[row, right] < tree[row, left]
    tree[row, node] = min(tree[row, left], tree[row, right])
    winner[row, node] = winner[row, left + np.uint64(other)]


@njit(forceinline=True)
def _comes_first(order: Any, one: Any, other: Any) -> Any:
    if order is not None:
        return order[np.uint64(one)] < order[np.uint64(other)]
    return one < other


@njit(forceinline=True)
def _set(tree: Any, winner: Any, order: Any, row: Any, leaf: Any, value: Any) -> None:
    line, one = np.uint64(row), np.uint64(1)
    node = np.uint64(leaf) + np.uint64(tree.shape[1] >> 1)
    best = np.int64(leaf)
    tree[line, node] = value
    while node > one:
        # Who has won so far meets the winner of the other side. Without a branch: who wins is not predictable.
        rival = node ^ one
        theirs, other = tree[line, rival], winner[line, rival]
        loses = (theirs < value) | ((theirs == value) & _comes_first(order, other, best))
        value = theirs if loses else value
        best ^= (best ^ other) & -np.int64(loses)
        node >>= one
        tree[line, node] = value
        winner[line, node] = best


@njit(forceinline=True)
def set_leaf(tree: Any, winner: Any, row: Any, leaf: Any, value: Any) -> None:
    """Set one value, and play its matches."""
    _set(tree, winner, None, row, leaf, value)


@njit(forceinline=True)
def set_ordered_leaf(tree: Any, winner: Any, order: Any, leaf: Any, value: Any, rank: Any) -> None:
    """Set one value of a tree of one row and its rank: of equal values, that of the lower rank is first.

    `order` int64[P] holds the ranks; those of leaves that take part differ, or are not looked at.
    """
    order[np.uint64(leaf)] = rank
    _set(tree, winner, order, 0, leaf, value)
