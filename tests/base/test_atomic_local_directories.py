"""Directories that appear whole or not at all, and never at the cost of somebody else's."""

import errno
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.storage.atomic_local_directories import staged_directory
from streamgroup.base.storage.process_tag import owner_is_alive, owner_tag


def fill(directory: Path, text: str = "new") -> None:
    (directory / "marker").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_it_appears_whole(tmp_path: Path) -> None:
    with staged_directory(tmp_path / "a" / "out", overwrite=False, marker="marker") as partial:
        fill(partial)
        assert not (tmp_path / "a" / "out").exists()
    assert names(tmp_path / "a") == ["out"]


def test_a_failure_leaves_nothing_not_even_parents(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), staged_directory(tmp_path / "a" / "b" / "out", overwrite=False, marker="m"):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_an_output_that_exists_is_refused_first(tmp_path: Path) -> None:
    fill_at = tmp_path / "out"
    fill_at.mkdir()
    with (
        pytest.raises(UsageError, match="exists already"),
        staged_directory(fill_at, overwrite=False, marker="marker"),
    ):
        pytest.fail("nothing may be done")


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_came_to_be_in_the_meantime_is_not_touched(tmp_path: Path, overwrite: bool) -> None:
    target = tmp_path / "out"

    def run() -> None:
        with staged_directory(target, overwrite=overwrite, marker="marker") as partial:
            fill(partial)
            target.mkdir()
            (target / "thesis.tex").write_text("years")

    with pytest.raises(UsageError):
        run()
    assert names(tmp_path) == ["out"]
    assert names(target) == ["thesis.tex"]


def test_the_second_of_two_runs_does_not_replace_the_first(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def run() -> None:
        with staged_directory(target, overwrite=False, marker="marker") as one:
            fill(one, "one")
            one.rename(tmp_path / "held")
            with staged_directory(target, overwrite=False, marker="marker") as other:
                fill(other, "other")
            (tmp_path / "held").rename(one)

    with pytest.raises(UsageError, match="exists already"):
        run()
    assert (target / "marker").read_text() == "other"


def test_only_ours_is_replaced_and_only_when_asked(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with staged_directory(target, overwrite=True, marker="marker") as partial:
        fill(partial, "one")
    with staged_directory(target, overwrite=True, marker="marker") as partial:
        fill(partial, "two")
    assert (target / "marker").read_text() == "two"
    assert names(tmp_path) == ["out"]
    (target / "marker").unlink()
    (target / "other").write_text("x")
    with pytest.raises(UsageError, match="not ours"), staged_directory(target, overwrite=True, marker="marker"):
        pytest.fail("nothing may be done")


def test_what_the_dead_left_is_removed_and_what_they_cut_short_is_put_back(tmp_path: Path) -> None:
    dead = "999999999-1"
    (tmp_path / f".out.partial-{dead}").mkdir()
    (tmp_path / f".out.replaced-{dead}").mkdir()
    (tmp_path / f".out.replaced-{dead}" / "marker").write_text("old")
    alive = tmp_path / ".out.partial-other"
    alive.mkdir()
    (tmp_path / f".out2.partial-{owner_tag()}").mkdir()
    with (
        pytest.raises(UsageError, match="exists already"),
        staged_directory(tmp_path / "out", overwrite=False, marker="marker"),
    ):
        pytest.fail("the old one is back")
    assert names(tmp_path) == sorted([f".out2.partial-{owner_tag()}", "out"])


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with (
        pytest.raises(EnvironmentFault, match="Permission denied"),
        staged_directory(tmp_path / "out", overwrite=False, marker="m"),
    ):
        pytest.fail("nothing may be done")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only where the system tells start times")
def test_a_killed_owner_that_nobody_has_asked_after_is_dead(tmp_path: Path) -> None:
    program = "from streamgroup.base.storage.process_tag import owner_tag; print(owner_tag(), flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    tag = process.stdout.readline().strip()
    assert owner_is_alive(tag)
    process.kill()
    # Not waited for: the process is a zombie.
    deadline = time.monotonic() + 120
    while owner_is_alive(tag) and time.monotonic() < deadline:
        time.sleep(0.01)
    alive = owner_is_alive(tag)
    process.communicate()
    assert not alive


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError(errno.EFBIG, "Error writing bytes to file. Detail: [errno 27] File too large"), "File too large"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "/elsewhere"), "Disk quota exceeded"),
    ],
)
def test_an_output_without_space_is_named(tmp_path: Path, error: OSError, cause: str) -> None:
    target = tmp_path / "out"
    with pytest.raises(EnvironmentFault) as caught, staged_directory(target, overwrite=False, marker="marker"):
        raise error
    assert caught.value.message == f"cannot write in {target}: {cause}"
    assert names(tmp_path) == []


def test_another_error_of_what_fills_it_stays(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), staged_directory(tmp_path / "out", overwrite=False, marker="marker"):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
