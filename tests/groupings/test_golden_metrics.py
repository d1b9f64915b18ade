"""No metric of any grouping over a real stream changes unnoticed."""

import json
from pathlib import Path

from tests.groupings.golden_metrics import GOLDEN, measured, real_trace


def test_metrics_are_those_that_are_kept(tmp_path: Path) -> None:
    """If a change is meant, `scripts/renew-golden-metrics` keeps the new ones, and the commit says why they changed."""
    kept, found = json.loads(GOLDEN.read_text()), measured(real_trace(tmp_path))
    assert list(found) == list(kept)
    for text, row in found.items():
        assert row == kept[text], text
