"""Syntax trees that several threads build at once."""

import ast
import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgroup.base.compiling.ast_lock import compile_tree, parse


@pytest.fixture
def switching() -> Iterator[None]:
    """Let another thread run in the middle of a tree: whenever objects are collected."""
    threshold = gc.get_threshold()

    def switch(_phase: str, _info: dict[str, int]) -> None:
        time.sleep(1e-4)

    gc.callbacks.append(switch)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*threshold)
    gc.callbacks.remove(switch)


@pytest.mark.usefixtures("switching")
def test_threads_build_trees() -> None:
    # With `ast.parse` itself one or more of these end in a SystemError.
    source = Path(ast.__file__).read_text(encoding="utf-8")[:20_000].rpartition("\ndef ")[0]
    errors = []

    def build() -> None:
        try:
            for _ in range(4):
                compile_tree(parse(source), "ast.py")
        except SystemError as error:
            errors.append(error)

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
