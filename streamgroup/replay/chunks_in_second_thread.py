"""Hands chunks to a second thread, one after the other, while the caller goes on with the next."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["following_thread"]


@contextlib.contextmanager
def following_thread(name: str) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Give a function that calls another one in a thread called `name`; all have returned when the context ends.

    Each waits until the one before has returned, and raises what that raised, as does the end of the context.
    """
    before: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix=name) as pool:

        def follow(call: Callable[[], None]) -> None:
            nonlocal before
            if before is not None:
                before.result()
            before = pool.submit(call)

        yield follow
        if before is not None:
            before.result()
