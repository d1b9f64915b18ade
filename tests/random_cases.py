"""Random cases that take long: scripts/test draws a third of them, scripts/test-slow all."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

_SHARE = 1 if os.environ.get("STREAMGROUP_ALL_CASES") else 3


def random_cases(number: int) -> Callable[[Any], Any]:
    """Let a test of hypothesis draw so many cases, or a third of them."""

    def decorate(test: Any) -> Any:
        return pytest.mark.random_cases(settings(max_examples=-(-number // _SHARE))(test))

    return decorate
