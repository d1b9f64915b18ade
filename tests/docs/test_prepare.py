"""The scripts that make traces of public data sets: what their pages say is so, and they pass options on."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.docs.console import ROOT, run, run_here

SAMPLES = {
    "amazon-reviews": b"product/productId: B1\nreview/userId: A1\nreview/time: 1182729600\n",
    "memetracker": b"P\thttp://one.example/a\nT\t2008-09-09 22:35:24\nQ\tB1\n",
    "twitter": b'{"created_at": "Tue Sep 09 18:44:28 +0000 2014", "text": "B1"}\n',
    "posg-tweets": b"1 B1\n",
}


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    for reader in SAMPLES:
        shutil.copy(ROOT / "scripts" / f"prepare-{reader}", folder)
    shutil.copy(ROOT / "scripts" / "_prepare", folder)
    # What sets the environment up has its own tests: here the one that runs the tests is there already.
    (folder / "_setup").write_text(f'root={tmp_path}\ncd "$root"\n')
    return tmp_path


@pytest.mark.parametrize("reader", SAMPLES)
def test_the_page_of_a_script_names_options_that_there_are(reader: str, scripts: Path) -> None:
    told = run(f"scripts/prepare-{reader}", scripts)
    assert told.returncode == 2
    assert run(f"scripts/prepare-{reader} somewhere.gz --help", scripts).stdout == told.stdout
    without = run(f"scripts/prepare-{reader} --dry-run", scripts)
    assert (without.returncode, without.stdout, without.stderr) == (2, told.stdout, "")
    page = told.stdout.replace("\\\n", " ")
    (command,) = re.findall(rf"^ +(streamgroup ingest {reader} .*)$", page, re.MULTILINE)
    known = set(re.findall(r"--?[a-z][a-z-]*", run_here(f"streamgroup ingest {reader} --help", scripts).stdout))
    used = {word for word in shlex.split(command) if word.startswith("-")}
    offered = re.search(rf"^Options of `streamgroup ingest {reader}`.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert offered
    assert used | set(re.findall(r"(?<!\w)--?[a-z][a-z-]*", offered[0])) <= known


@pytest.mark.parametrize("reader", SAMPLES)
def test_a_script_reads_the_files_given(reader: str, scripts: Path) -> None:
    here = scripts / "elsewhere"
    here.mkdir()
    (here / "some file").write_bytes(SAMPLES[reader])
    found = run(f"../scripts/prepare-{reader} 'some file' --dry-run --json", here)
    assert found.returncode == 0, found.stderr
    assert re.search('"key": "b1"', found.stdout, re.IGNORECASE)
    assert [path.name for path in here.iterdir()] == ["some file"]
    wrong = run(f"../scripts/prepare-{reader} missing --dry-run", here)
    assert (wrong.returncode, "there is no file missing" in wrong.stderr) == (2, True)
