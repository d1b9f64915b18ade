"""Storm's rules against what Storm did, and vectorised against themselves."""

from typing import Any

import numpy as np
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.engines import storm
from streamgroup.engines.keys.typed_key_values import Long
from tests.engines.recorded_vectors import check_all, keys_of, rows, typed

PAIRS = [(version, mode) for version in ("1", "2") for mode in ("fields", "first")]


@pytest.mark.parametrize("name", ["storm-fields", "storm-fields-multi"])
def test_fields(name: str) -> None:
    for row in rows(name):
        assert storm.fields_task(typed(row["key"], row["key_type"]), row["n"]) == row["expected"], row


def test_trident() -> None:
    for row in rows("storm-trident-indexhash"):
        assert storm.trident_task(typed(row["key"], row["key_type"]), row["n"]) == row["expected"], row


def test_trident_looks_at_one_field() -> None:
    assert storm.trident_task(("a",), 7) == storm.trident_task("a", 7)
    with pytest.raises(UsageError, match="one field, not 2"):
        storm.trident_task(("a", "b"), 7)


@pytest.mark.parametrize(("version", "mode"), PAIRS)
def test_pkg(version: Any, mode: Any) -> None:
    for row in rows(f"storm-pkg-{version}x-{mode}"):
        found = storm.pkg_tasks(typed(row["key"], row["key_type"]), row["n"], version, mode)
        assert list(found) == row["expected_candidates"], row


@pytest.mark.parametrize("version", ["1", "2"])
def test_pkg_in_sequence(version: Any) -> None:
    for row in rows(f"storm-pkg-{version}x-sequence"):
        load = [0] * row["n"]
        for key, chosen in zip(row["keys"], row["expected"], strict=True):
            assert storm.pkg_choose(storm.pkg_tasks(key, row["n"], version, row["mode"]), load) == chosen


@pytest.mark.parametrize("name", ["fields", "trident"])
def test_vectorised(name: str) -> None:
    one, many = getattr(storm, f"{name}_task"), getattr(storm, f"{name}_tasks_all")
    check_all("storm-fields", one, many, null=True)


@pytest.mark.parametrize(("version", "mode"), PAIRS)
def test_pkg_vectorised(version: Any, mode: Any) -> None:
    check_all(
        "storm-fields",
        lambda key, n: list(storm.pkg_tasks(key, n, version, mode)),
        lambda keys, n: storm.pkg_tasks_all(keys, n, version, mode),
        null=mode == "fields",
        kinds=("string", "int", "long", "bytes") if mode == "fields" else ("string", "int", "long"),
    )


def test_pkg_refuses_what_storm_throws_on() -> None:
    for version in ("1", "2"):
        with pytest.raises(DataError, match="null"):
            storm.pkg_tasks(None, 4, version, "first")
        with pytest.raises(DataError, match="null"):
            storm.pkg_tasks_all(keys_of("string", ["a", None]), 4, version, "first")
        with pytest.raises(UsageError, match="bytes"):
            storm.pkg_tasks(b"a", 4, version, "first")
        with pytest.raises(UsageError, match="bytes"):
            storm.pkg_tasks_all(keys_of("bytes", [b"a"]), 4, version, "first")


@pytest.mark.parametrize("asked", [storm.pkg_tasks, storm.pkg_tasks_all])
def test_pkg_has_two_versions_and_two_modes(asked: Any) -> None:
    keys = "a" if asked is storm.pkg_tasks else keys_of("string", ["a"])
    with pytest.raises(UsageError, match="version"):
        asked(keys, 4, "3")
    with pytest.raises(UsageError, match="mode"):
        asked(keys, 4, "1", "last")


def test_version_2_collapses_on_powers_of_two() -> None:
    """Longs 0 to 9999: 3 of 8, 4 of 16 and 20 of 128 tasks are first choices."""
    keys = keys_of("long", [Long(v) for v in range(10_000)])
    for n, hit in ((8, 3), (16, 4), (128, 20), (100, 100)):
        assert len(np.unique(storm.pkg_tasks_all(keys, n, "2", "fields")[:, 0])) == hit


@pytest.mark.parametrize("n", [0, -1, 65_537, 2.0, True])
def test_how_many_tasks(n: Any) -> None:
    with pytest.raises(UsageError, match="65536"):
        storm.fields_task("a", n)
