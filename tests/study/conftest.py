"""A small run, to be damaged."""

import shutil
from pathlib import Path

import pytest

import streamgroup as sg


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    sg.synth("zipf", place / "z.trace", tuples=300, keys=30, exponent=1.1)
    sg.replay(place / "z.trace", "kg", 3, output=place / "run")
    return place


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "run", tmp_path / "run"))
