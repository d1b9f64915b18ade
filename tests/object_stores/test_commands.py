"""Traces in object stores on the command line: read, swept, exported."""

import json
from pathlib import Path
from typing import Any

from tests.conftest import Bucket
from tests.object_stores.conftest import invoke


def _facts(target: object) -> dict[str, Any]:
    found = invoke("describe", target, "--json")
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def test_a_trace_is_read_from_its_url(bucket: Bucket, trace: Path, tmp_path: Path) -> None:
    url = bucket.upload(trace, "x.trace")
    assert _facts(url) == _facts(trace)
    assert invoke("validate", url).stdout == invoke("validate", trace).stdout.replace(str(trace), url)
    for to in ("csv", "parquet"):
        for name, source in (("far", url), ("near", trace)):
            assert invoke("export", source, "--to", to, "-o", tmp_path / f"{name}.{to}").exit_code == 0
        assert (tmp_path / f"far.{to}").read_bytes() == (tmp_path / f"near.{to}").read_bytes()
    runs = [invoke("replay", source, "-g", "kg", "-n", "4", "--json") for source in (url, trace)]
    assert [run.exit_code for run in runs] == [0, 0]
    assert json.loads(runs[0].stdout) == json.loads(runs[1].stdout)


def test_a_sweep_reads_a_trace_from_its_url(bucket: Bucket, trace: Path, tmp_path: Path) -> None:
    url = bucket.upload(trace, "x.trace")
    spec = tmp_path / "spec.toml"
    spec.write_text(f'traces = ["{url}"]\ngroupings = ["kg"]\nworkers = 4\n')
    found = [
        invoke("sweep", *given, "-o", tmp_path / f"out{place}", "--json")
        for place, given in enumerate([(url, "-g", "kg", "-n", "4"), (trace, "-g", "kg", "-n", "4"), (spec,)])
    ]
    rows = [json.loads(run.stdout) for run in found]
    assert [run.exit_code for run in found] == [0, 0, 0]
    assert rows[0] == rows[1] == rows[2]


def test_export_to_a_url(bucket: Bucket, trace: Path, tmp_path: Path) -> None:
    out = bucket.url("out.csv")
    assert invoke("export", trace, "--to", "csv", "-o", out).exit_code == 0
    assert invoke("export", trace, "--to", "csv", "-o", tmp_path / "out.csv").exit_code == 0
    assert bucket.place("out.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    again = invoke("export", trace, "--to", "csv", "-o", out)
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    assert invoke("export", trace, "--to", "slb", "-o", out, "--overwrite").exit_code == 0
    assert bucket.place("out.csv").read_bytes().startswith(b"0\tk0\n")
    inside = bucket.upload(trace, "x.trace").replace("x.trace?", "x.trace/out.csv?")
    assert "inside the trace" in invoke("export", bucket.url("x.trace"), "--to", "csv", "-o", inside).stderr


def test_outputs_that_take_paths_refuse_urls(bucket: Bucket, trace: Path) -> None:
    found = invoke("replay", trace, "-g", "kg", "-n", "2", "-o", bucket.url("run"))
    assert found.exit_code == 2
    assert "is a URL" in found.stderr
