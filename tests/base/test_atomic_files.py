"""Files that appear whole."""

from pathlib import Path

import pytest

from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.storage.atomic_files import write_files


def test_files_are_written_with_their_parents(tmp_path: Path) -> None:
    write_files({tmp_path / "a" / "b.txt": b"1", tmp_path / "c.txt": b"2"}, overwrite=False)
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c.txt"]


def test_what_exists_is_replaced_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("old")
    with pytest.raises(UsageError, match="exists already"):
        write_files({tmp_path / "a": b"new", tmp_path / "b": b"new"}, overwrite=False)
    assert not (tmp_path / "a").exists()
    write_files({tmp_path / "b": b"new"}, overwrite=True)
    assert (tmp_path / "b").read_text() == "new"
    with pytest.raises(UsageError, match="is a directory"):
        write_files({tmp_path: b""}, overwrite=True)


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".a.partial-999999999-1"
    left.write_text("half")
    write_files({tmp_path / "a": b"1"}, overwrite=False)
    assert not left.exists()


def test_a_place_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot write"):
        write_files({tmp_path / "a": b"1", tmp_path / "file" / "b": b"2"}, overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
