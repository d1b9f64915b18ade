"""Where caches are, and what is done where there is no place for them."""

from pathlib import Path

import pytest

from streamgroup.base.compiling.code_cache import code_directory
from streamgroup.base.storage.cache_directory import cache_root
from streamgroup.cli.commands.doctor import _class_archives
from streamgroup.report import page


@pytest.fixture
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user whom the system does not know."""

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("STREAMGROUP_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)


def test_the_settings_come_before_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("STREAMGROUP_CACHE_DIR", raising=False)
    assert cache_root() == tmp_path / "streamgroup"
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"


@pytest.mark.usefixtures("_no_home")
def test_without_a_home_directory_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="STREAMGROUP_CACHE_DIR"):
        cache_root()
    assert code_directory("some-code").is_dir()
    assert _class_archives().startswith("none: ")
    monkeypatch.setattr(page.vl_convert, "javascript_bundle", lambda _: "1;")
    assert page._bundle() == "1;"
