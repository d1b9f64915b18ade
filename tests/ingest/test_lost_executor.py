"""An executor, or a Python worker, is killed (-9) in each step of an ingest on a cluster: Spark does its work again."""

from pathlib import Path
from typing import Any

import pytest

from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options
from tests.spark.session_on_cluster import Cluster

pytestmark = pytest.mark.spark

STEPS = ("reading", "checking the order", "cutting to the head", "ranking keys", "writing")
# Those that an input of several parts takes besides.
MORE_STEPS = ("sorting", "counting", "writing")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("raw") / "x.csv"
    rows = (f"{1_600_000_000 + n * 7919 % 999_983},key-{n * n % 100_003}" for n in range(500_000))
    path.write_text("time,key\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Page views of an hour: few lines, and more tuples than a part has, in no order."""
    path = tmp_path_factory.mktemp("views") / "pageviews-20240803-060000"
    path.write_text("".join(f"en Page_{n} {4000 + n} 0\n" for n in range(2000)))
    return path


@pytest.fixture(scope="module")
def fingerprints() -> dict[str, str]:
    return {}


def right(path: Path, folder: Path, known: dict[str, str], **options: Any) -> str:
    """Make the trace in this process, once."""
    name = f"{path} {options}"
    if name not in known:
        asked = make_options(inputs=(str(path),), output=folder / "right.trace", engine="local", **options)
        known[name] = str(ingest(asked).manifest.fingerprint)
    return known[name]


def killed_in(cluster: Cluster, step: str, what: str, raw: Path, folder: Path, **options: Any) -> str:
    fingerprint, killed = cluster.call(
        "tests.spark.calls_on_cluster:ingest_killed", step, what, str(raw), str(folder / "x.trace"), options
    )
    assert killed == 1
    return str(fingerprint)


def test_an_executor_that_dies_while_parts_are_written(
    cluster: Cluster, raw: Path, fingerprints: dict[str, str], tmp_path: Path
) -> None:
    expected = right(raw, tmp_path, fingerprints, reader="csv")
    assert killed_in(cluster, "writing", "executor", raw, tmp_path, reader="csv") == expected
    assert [entry.name for entry in (tmp_path / "x.trace" / "tuples").iterdir()] == ["part-00000.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["executor", "worker"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_in_each_step(
    cluster: Cluster, raw: Path, fingerprints: dict[str, str], tmp_path: Path, step: str, what: str
) -> None:
    of_head = step in ("checking the order", "cutting to the head")
    options = {"reader": "csv", **({"head": 300_000} if of_head else {})}
    assert killed_in(cluster, step, what, raw, tmp_path, **options) == right(raw, tmp_path, fingerprints, **options)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["executor", "worker"])
@pytest.mark.parametrize("step", MORE_STEPS)
def test_killed_in_each_step_of_several_parts(
    cluster: Cluster, views: Path, fingerprints: dict[str, str], tmp_path: Path, step: str, what: str
) -> None:
    options = {"reader": "wikipedia-pageviews", "reader_options": {"spread": "draw"}}
    assert killed_in(cluster, step, what, views, tmp_path, **options) == right(views, tmp_path, fingerprints, **options)
    assert len(list((tmp_path / "x.trace" / "tuples").iterdir())) == 2
