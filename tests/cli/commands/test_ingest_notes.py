"""What an ingest tells beside its result."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgroup.ingest import make_trace

COUNTS = ("tuples", "keys", "p1", "rows_read", "rows_kept", "rows_rejected", "rows_filtered", "fingerprint")


@pytest.mark.parametrize("quiet", [False, True])
def test_what_was_inferred_is_no_warning(
    quiet: bool, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifest = SimpleNamespace(**dict.fromkeys(COUNTS, 1))
    result = SimpleNamespace(
        trace=tmp_path / "t", manifest=manifest, notes=["inferred: times are s"], warnings=["1 rows rejected"]
    )
    monkeypatch.setattr(make_trace, "ingest", lambda *_: result)
    made = invoke(*(["--quiet"] if quiet else []), "ingest", "csv", "x.csv", "-o", tmp_path / "t")
    assert made.exit_code == 0
    told = [] if quiet else ["note: inferred: times are s", "warning: 1 rows rejected"]
    assert made.stderr.splitlines() == told
