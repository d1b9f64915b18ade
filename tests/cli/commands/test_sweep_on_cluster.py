"""`sweep` on a cluster prints and writes what it does in threads."""

import json
from pathlib import Path

import pytest

from tests.cli.commands.test_sweep import Invoke, tables
from tests.spark.session_on_cluster import MASTER, Cluster


@pytest.mark.spark
def test_a_cluster_gives_the_same_and_goes_on_with_what_is_there(
    trace: Path, tmp_path: Path, invoke: Invoke, cluster: Cluster
) -> None:
    grid = (trace, "-g", "kg", "-g", "greedy_d:d=2,3", "-g", "posg", "-n", "4,8", "--queue-capacity", "10")
    grid = (*grid, "--when-full", "drop", "--json")
    here = invoke("sweep", *grid, "-o", tmp_path / "here")
    first = invoke("sweep", *grid[:3], "-n", "4", *grid[9:], "-o", tmp_path / "there")
    assert (here.exit_code, first.exit_code) == (1, 0)
    command = ("sweep", *map(str, grid), "-o", str(tmp_path / "there"), "--master", MASTER)
    code, printed, told = cluster.call("tests.spark.calls_on_cluster:run_command", *command)
    assert code == 1, told
    assert "1 reused, 7 to run" in told
    assert json.loads(printed) == json.loads(here.stdout)
    assert tables(tmp_path / "there") == tables(tmp_path / "here")
