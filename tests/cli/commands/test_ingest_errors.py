"""Inputs and machines that do not serve: one clear line, the exit code of the reference, and nothing left behind."""

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgroup.ingest import make_trace

ROWS = b"time,key\n" + b"".join(b"%d,k%d\n" % (number, number) for number in range(50_000))
GIVEN: list[tuple[str, bytes | None, int, str]] = [
    ("missing.csv", None, 2, "there is no file"),
    ("empty.csv", b"", 4, "no rows in it"),
    ("cut.csv.gz", gzip.compress(ROWS, mtime=0)[:-200], 4, "the compressed data are cut off or damaged"),
    ("cut.csv.gz", gzip.compress(ROWS, mtime=0)[:9], 4, "the compressed data are cut off or damaged"),
    ("cut.zip", b"PK\x03\x04 and no more", 4, "the compressed data are cut off or damaged"),
    ("other.csv", b"a;b\n1;2\n", 2, "which column is the time?"),
    ("zeros.csv", bytes(5000), 4, "not a text, 100% of its first bytes are zeros"),
    ("cut.parquet", b"PAR1", 4, "cut.parquet"),
]


@pytest.fixture
def ingest(invoke: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Ingest what needs no Spark, as it fails before."""
    monkeypatch.delattr(make_trace, "start_session")

    def call(path: Path, *options: str, reader: str = "csv") -> Any:
        before = sorted(tmp_path.rglob("*"))
        found = invoke("ingest", reader, path, "-o", tmp_path / "deep" / "x.trace", *options)
        assert sorted(tmp_path.rglob("*")) == before
        assert found.stdout == ""
        assert "Traceback" not in found.stderr
        return found

    return call


@pytest.mark.parametrize(("name", "content", "code", "said"), GIVEN)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_inputs_that_do_not_serve(
    ingest: Callable[..., Any],
    tmp_path: Path,
    name: str,
    content: bytes | None,
    code: int,
    said: str,
    dry: tuple[str, ...],
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    found = ingest(tmp_path / name, *dry, reader="parquet" if name.endswith("parquet") else "csv")
    assert found.exit_code == code, found.stderr
    lines = found.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("error: ")
    assert said in lines[0]
    assert name in lines[0]
    assert lines[1].startswith("hint: ")


def test_a_header_alone(ingest: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"time,key\n")
    found = ingest(tmp_path / "x.csv")
    assert (found.exit_code, found.stderr.splitlines()[0]) == (4, "error: no tuple is left of 1 row: 1 header")


def test_what_is_no_file(ingest: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = ingest(tmp_path)
    assert (directory.exit_code, directory.stderr.splitlines()[0]) == (
        2,
        f"error: {tmp_path} is a directory without data files",
    )
    os.mkfifo(tmp_path / "pipe")
    pipe = ingest(tmp_path / "pipe")
    assert (pipe.exit_code, pipe.stderr.splitlines()[0]) == (2, f"error: {tmp_path / 'pipe'} is not a file")
    secret = tmp_path / "secret.csv"
    secret.write_bytes(ROWS)
    plain = Path.open

    def refused(self: Path, *arguments: Any, **options: Any) -> Any:
        if self == secret:
            raise PermissionError(13, "Permission denied", str(self))
        return plain(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refused)
    found = ingest(secret)
    assert found.exit_code == 3
    assert found.stderr.splitlines() == [f"error: {secret}: Permission denied", "hint: check its permissions"]


def test_long_keys_and_keys_with_nul(ingest: Callable[..., Any], invoke: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"time,key\n1," + b"k" * (1 << 20) + b"\n2,a\x00b\n3,\x00\n")
    found = invoke("ingest", "csv", path, "-o", tmp_path / "t", "--dry-run", "--format", "csv")
    assert found.exit_code == 0
    _, first, second, third = found.stdout.splitlines()
    assert len(first) > 1 << 20
    assert (second.split(",")[1], third.split(",")[1]) == ("a\x00b", "\x00")


@pytest.mark.spark
def test_a_full_disk(tmp_path: Path) -> None:
    """No file may grow past 1 MB: the first segment does."""
    (tmp_path / "x.csv").write_bytes(b"time,key\n" + b"".join(b"%d,k%d\n" % (n, n * n) for n in range(200_000)))
    (tmp_path / "tmp").mkdir()
    found = subprocess.run(
        [sys.executable, "-m", "streamgroup", "ingest", "csv", "x.csv", "-o", "deep/x.trace", "--master", "local[1]"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "TMPDIR": str(tmp_path / "tmp")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 3, found.stderr
    assert found.stderr.splitlines()[0] == "error: the disk is full (File too large)"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["tmp", "x.csv"]
