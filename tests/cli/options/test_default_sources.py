"""How many sources a run has without `--sources`: as many as the grouping says, in a sweep the same for all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamgroup as sg
from streamgroup.replay.scenario.grouping_selection import default_sources
from streamgroup.replay.scenario.options import ReplayOptions
from tests.traces_by_hand import write_trace

Invoke = Callable[..., Any]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("t") / "small", [(i * 1000, b"%d" % (i % 40), None) for i in range(200)])


def test_one_source_for_posg_and_a_warning_with_more(small: Path, invoke: Invoke) -> None:
    asked = ("replay", small, "-n", "4", "--json")
    done = invoke(*asked, "-g", "posg")
    assert json.loads(done.stdout)[0]["sources"] == 1
    assert "\nsources: 1, the default of posg; --sources takes another number\n" in done.stderr
    assert "one scheduler" not in done.stderr
    more = invoke(*asked, "-g", "posg", "--sources", "5")
    assert json.loads(more.stdout)[0]["sources"] == 5
    assert "warning: 5 sources: the paper has one scheduler" in more.stderr
    other = invoke(*asked, "-g", "sg")
    assert json.loads(other.stdout)[0]["sources"] == 5
    assert "the default of" not in other.stderr
    assert sg.replay(small, "posg", 4).options["sources"] == 1
    assert sg.replay(small, "posg", 4, sources=None).options["sources"] == 1


def test_a_sweep_has_the_same_number_for_all(small: Path, tmp_path: Path, invoke: Invoke) -> None:
    def sources(*groupings: str) -> set[tuple[str, int]]:
        named = [part for name in groupings for part in ("-g", name)]
        done = invoke("sweep", small, *named, "-n", "4", "-o", tmp_path / "out", "--dry-run", "--json")
        return {(row["grouping"], row["sources"]) for row in json.loads(done.stdout)}

    assert sources("posg", "posg:batch=8") == {("posg", 1), ("posg:batch=8", 1)}
    assert sources("posg", "sg") == {("posg", 5), ("sg", 5)}
    done = invoke("sweep", small, "-g", "posg", "-g", "sg", "-n", "4", "-o", tmp_path / "out", "--json")
    assert {row["sources"] for row in json.loads(done.stdout)} == {5}
    assert "warning: small, posg on 4 workers: 5 sources: the paper has one scheduler" in done.stderr


def test_it_is_stated(invoke: Invoke) -> None:
    assert json.loads(invoke("groupings", "posg", "--json").stdout)["sources"] == 1
    assert "sources, if --sources is not given: 1\n" in invoke("groupings", "posg").stdout
    assert "sources, if" not in invoke("groupings", "kg").stdout


def test_a_grouping_that_does_not_exist_is_refused_where_it_is_selected() -> None:
    assert ReplayOptions("nothing", 4).sources == 5
    assert default_sources([]) == 5
