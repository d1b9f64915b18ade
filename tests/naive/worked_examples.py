"""The worked examples."""

import json
from pathlib import Path
from typing import Any

__all__ = ["example"]


def example(name: str) -> tuple[Any, Any]:
    """What is given and what is expected."""
    examples = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
    (found,) = [e for e in examples if e["id"] == name]
    return found["input"], found["expected"]
