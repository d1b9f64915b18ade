"""A cache of chunks and decoded columns, shared by replays in threads of one process."""

import threading
from collections.abc import Callable, Generator, Hashable, Iterator
from typing import Any

__all__ = ["ChunkCache"]


class _Shared:
    """The items of an iterator, kept; the first reader that needs an item takes it, in its own thread."""

    def __init__(self, source: Iterator[Any], size: int) -> None:
        self.size = size
        self.readers = 0
        self._source = source
        self._lock = threading.Lock()
        self._kept: list[Any] = []
        self._ended = False
        self._error: BaseException | None = None

    def get(self, place: int) -> Any:
        """Return the item at a place, None past the end; every reader gets the error that ended the iterator."""
        if place < len(self._kept):
            return self._kept[place]
        with self._lock:
            while place >= len(self._kept) and not self._ended:
                try:
                    self._kept.append(next(self._source))
                except StopIteration:
                    self._ended = True
                except BaseException as error:
                    self._ended, self._error = True, error
                    raise
            if place < len(self._kept):
                return self._kept[place]
            if self._error is not None:
                raise self._error
            return None

    def close(self) -> None:
        """Forget the items and leave the iterator where it is."""
        self._source = iter(())
        self._kept.clear()


class ChunkCache:
    """Keeps the input of replays in threads of one process, as long as all of it fits into `budget` bytes.

    What does not fit is made anew by each reader. Entries without a reader are evicted, least recently used first.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        # What is forgotten may itself read something that is shared, and says so when it goes.
        self._lock = threading.RLock()
        # In the order of their last use.
        self._known: dict[Hashable, _Shared] = {}

    def shared(self, key: Hashable, size: int, make: Callable[[], Iterator[Any]]) -> Generator[Any]:
        """Iterate over what `make` iterates over, made once for all readers with an equal key; `size` is its bytes.

        Items are seen by several threads and must not be written to.
        """
        with self._lock:
            one = self._known.pop(key, None)
            if one is None and self._make_room(size):
                one = _Shared(make(), size)
            if one is not None:
                self._known[key] = one
                one.readers += 1
        if one is None:
            yield from make()
            return
        try:
            place = 0
            while (item := one.get(place)) is not None:
                yield item
                place += 1
        finally:
            with self._lock:
                one.readers -= 1

    def _make_room(self, size: int) -> bool:
        taken = sum(one.size for one in self._known.values())
        idle = [key for key, one in self._known.items() if one.readers == 0]
        reclaimable = sum(self._known[key].size for key in idle)
        if taken - reclaimable + size > self._budget:
            return False
        for key in idle:
            if taken + size <= self._budget:
                break
            one = self._known.pop(key)
            taken -= one.size
            one.close()
        return True
