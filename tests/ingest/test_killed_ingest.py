"""Killed at ten moments, in every stage of an ingest: what is there is whole or absent, and the next run works."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamgroup.traces.checks.validate import validate
from streamgroup.traces.trace import open_trace
from tests.ingest.kill_at_file_change import ingest_here

ROOT = Path(__file__).resolve().parents[2]


def killed(raw: Path, out: Path, moment: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.ingest.kill_at_file_change", str(raw), str(out), str(moment)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("raw") / "raw.csv"
    rows = [f"{1000 - i % 37 * 7},key{i * i % 101}" if i % 11 else f"never,{i}" for i in range(5000)]
    path.write_text("\n".join(["time,key", *rows]))
    return path


@pytest.fixture(scope="module")
def changes(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    out = tmp_path_factory.mktemp("whole") / "out" / "x.trace"
    out.parent.mkdir()
    ingest_here(raw, out, overwrite=False)
    told = killed(raw, out, 0)
    assert told.returncode == 0, told.stderr
    return int(told.stdout)


# From the first to the last, and those around the two renames that put a new trace in the place of an old one.
MOMENTS = (1, 2, 0.15, 0.3, 0.45, 0.6, 0.75, -3, -2, -1)


@pytest.mark.parametrize("before", ["nothing", "another"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed(tmp_path: Path, raw: Path, changes: int, moment: float, before: str) -> None:
    folder, other = tmp_path / "out", tmp_path / "other.csv"
    out = folder / "x.trace"
    folder.mkdir()
    right = ingest_here(raw, tmp_path / "right.trace", overwrite=False)
    old = None
    if before == "another":
        other.write_text("time,key\n1,a\n")
        old = ingest_here(other, out, overwrite=False)
    # Without an old trace there are two changes fewer: it is not put aside, and not removed.
    total = changes - (2 if before == "nothing" else 0)
    at = total + 1 + int(moment) if moment < 0 else int(moment) if moment >= 1 else int(moment * total)
    ended = killed(raw, out, at)
    assert ended.returncode == -9, ended.stderr
    if out.exists():
        assert [finding for finding in validate(out) if finding.level == "error"] == []
        assert open_trace(out).fingerprint() in (old, right)
    else:
        # Put aside by a rename, of which the other half is missing: the next run would put it back.
        assert before == "nothing" or list(folder.glob(".x.trace.replaced-*"))
    assert ingest_here(raw, out, overwrite=True) == right
    assert open_trace(out).tuples == 4545
    assert [entry.name for entry in folder.iterdir()] == ["x.trace"]
