"""Parses and compiles Python's syntax trees under a lock, as threads may not do so side by side.

In CPython 3.11 and 3.12 the depth of the tree that is being built is counted once for all threads, so two that
build trees side by side may end in `SystemError: AST constructor recursion depth mismatch` (python/cpython#106905).
"""

import ast
import threading
from types import CodeType

__all__ = ["compile_tree", "parse"]

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """Return the tree of a module; SyntaxError and ValueError as of `ast.parse`."""
    with _ONE_AT_A_TIME:
        return ast.parse(source)


def compile_tree(tree: ast.Module, filename: str) -> CodeType:
    """Return the code of a tree, whose nodes need no line numbers."""
    with _ONE_AT_A_TIME:
        return compile(ast.fix_missing_locations(tree), filename, "exec")
