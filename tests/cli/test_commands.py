"""Commands in short: what each prints for people and for programs."""

import csv
import io
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import streamgroup
from streamgroup.base import memory
from streamgroup.metrics.metric_names import METRICS


def test_version_help_and_nothing(invoke) -> None:
    assert invoke("--version").stdout == f"streamgroup {streamgroup.__version__}\n"
    for group in ((), ("ingest",), ("synth",)):
        assert invoke(*group, "--help").exit_code == 0
        bare = invoke(*group)
        assert bare.exit_code == 2
        assert bare.stdout == invoke(*group, "--help").stdout


def test_replay_gives_every_metric_by_name(invoke, trace) -> None:
    (row,) = json.loads(invoke("replay", trace, "-g", "greedy_d:d=3", "-n", "5", "--json").stdout)
    names = list(row)
    assert names[:3] == ["trace", "grouping", "workers"]
    assert set(METRICS) <= set(names)
    assert (row["grouping"], row["sources"], row["seed"]) == ("greedy_d:d=3", 5, 0)


def test_a_table_for_people_never_shows_a_mean_without_its_maximum(invoke, trace) -> None:
    found = invoke("replay", trace, "-g", "pkg", "-n", "5", "--arrivals", "utilization=0.8")
    shown = dict(line.split(None, 1) for line in found.stdout.splitlines()[2:])
    for mean, most in (
        ("latency_mean_ms", "latency_max_ms"),
        ("utilization_mean", "utilization_max"),
        ("window_imbalance_mean", "window_imbalance_max"),
        ("replication_factor", "state_entries_max"),
    ):
        assert mean in shown
        assert most in shown
    assert "offered load: 80 %" in found.stderr


def test_every_format_of_a_run_says_the_same(invoke, trace) -> None:
    def text(form: str) -> str:
        found = invoke("replay", trace, "-g", "kg", "-n", "5", "--format", form)
        assert found.exit_code == 0
        return found.stdout

    (row,) = json.loads(text("json"))
    assert json.loads(text("jsonl")) == row
    (line,) = csv.DictReader(io.StringIO(text("csv")))
    assert list(line) == list(row)
    for name, value in row.items():
        if isinstance(value, float):
            assert float(line[name]) == value
    assert "| latency_max_ms |" in text("markdown")


def test_seed_0_repeats_and_1_differs(invoke, trace) -> None:
    def run(seed: int) -> str:
        return invoke(
            "replay", trace, "-g", "kg", "-n", "3", "--arrivals", "poisson=2000", "--seed", seed, "--json"
        ).stdout

    first = run(0)
    assert first == run(0)
    other = json.loads(run(1))[0]
    assert json.loads(first)[0]["latency_mean_ms"] != other["latency_mean_ms"]
    assert json.loads(first)[0]["replicas"] == other["replicas"]


def test_quiet_and_verbose(invoke, trace) -> None:
    command = ("replay", trace, "-g", "sg", "-n", "3")
    assert invoke(*command, "--quiet").stderr == ""
    assert invoke("--quiet", *command).stderr == ""
    assert "tuples/s" in invoke(*command, "--verbose").stderr
    assert "tuples/s" not in invoke(*command).stderr


def test_describe(invoke, trace) -> None:
    facts = json.loads(invoke("describe", trace, "--json").stdout)
    assert facts["tuples"] == facts["rows_read"] == facts["rows_kept"] == 20_000
    assert facts["first_timestamp"] == 0
    assert facts["last_timestamp"] == 3_999_800
    assert facts["top_keys"][0]["key"] == "k0"
    assert facts["top_keys"][0]["share"] == facts["p1"]
    people = invoke("describe", trace, "--top-keys", "3").stdout
    assert re.search(r"^zipf_exponent +1\.\d+ +z of the Zipf law that fits best; 0 is uniform$", people, re.MULTILINE)
    assert re.search(r"^first_timestamp +0 +us +since 1970: 1970-01-01 00:00:00\+00:00$", people, re.MULTILINE)
    assert re.search(r"^drift +\S+ +share +of hot keys that change", people, re.MULTILINE)
    assert f"\nfingerprint {facts['fingerprint']}\n" in people
    assert max(map(len, people.splitlines())) <= 110
    assert [line.split()[0] for line in people.splitlines()[-3:]] == ["k0", "k1", "k2"]


def test_keys_by_their_best_window(invoke, trace) -> None:
    people = invoke("describe", trace, "--over", "1s", "--top-keys", 3).stdout.splitlines()[-5:]
    assert people[0].split() == ["key", "share", "peak_share", "from", "to", "window_tuples"]
    assert people[2].split()[0] == "k0"
    facts = json.loads(invoke("describe", trace, "--over", "1s", "--top-keys", 3, "--json").stdout)
    assert facts["over"] == "1s"
    assert len(facts["peaks"]) == len(facts["top_keys"]) == 3
    assert facts["peaks"][0]["peak_share"] > facts["peaks"][0]["share"] == facts["p1"]
    assert "over" not in json.loads(invoke("describe", trace, "--json").stdout)
    refused = invoke("describe", trace, "--over", "soon")
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_validate(invoke, trace, tmp_path) -> None:
    good = invoke("validate", trace)
    assert (good.exit_code, good.stdout[:3]) == (0, "ok:")
    assert json.loads(invoke("validate", trace, "--json").stdout) == []
    bad = tmp_path / "bad"
    shutil.copytree(trace, bad)
    manifest = json.loads((bad / "trace.json").read_text())
    (bad / "trace.json").write_text(json.dumps(manifest | {"tuples": 7}))
    found = invoke("validate", bad, "--json")
    assert found.exit_code == 4
    assert any(row["level"] == "error" and "tuples" in row["message"] for row in json.loads(found.stdout))


def test_export_to_a_file(invoke, trace, tmp_path) -> None:
    file = tmp_path / "out.csv"
    command = ("export", trace, "--to", "csv", "-o", file)
    assert invoke(*command).exit_code == 0
    assert len(file.read_text().splitlines()) == 20_001
    assert invoke(*command).exit_code == 2
    assert invoke(*command, "--overwrite").exit_code == 0


def test_groupings(invoke) -> None:
    rows = json.loads(invoke("groupings", "--json").stdout)
    folder = Path(streamgroup.__file__).parent / "groupings"
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    files = sorted(({path.stem for path in folder.glob("[!_]*.py")} | packages) - {"detectors", "protocol"})
    assert [row["grouping"] for row in rows] == files
    assert all(row["about"] for row in rows)
    for name in files:
        assert invoke("groupings", name).stdout.startswith(f"{name}: ")
    one = json.loads(invoke("groupings", "pkg", "--json").stdout)
    assert "ICDE 2015" in one["about"]
    assert one["parameters"][0]["parameter"] == "d"
    assert one["parameters"][0]["default"] == 2
    assert one["parameters"][0]["range"] == ">= 1 and <= 4096"


def test_parameters_that_are_required_are_listed(invoke, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        '"""Mine."""\n'
        "from streamgroup.groupings.w_choices import Params as Base, start\n"
        "class Params(Base):\n"
        "    width: int\n"
        "    depth: int = 3\n"
    )
    one = json.loads(invoke("groupings", mine, "--json").stdout)
    named = {row["parameter"]: row["default"] for row in one["parameters"]}
    assert (list(named)[:2], named["width"], named["depth"]) == (["width", "depth"], None, 3)
    assert ("theta" in named, one["sources"]) == (True, None)
    assert re.search(r"width +.*required", invoke("groupings", mine).stdout)
    # A detector's parameters are listed, too, and what is given is checked.
    other = json.loads(invoke("groupings", f"{mine}:detector=synopsis", "--json").stdout)
    assert {"width", "r"} <= {row["parameter"] for row in other["parameters"]}
    assert json.loads(invoke("groupings", f"{mine}:width=2", "--json").stdout)["sources"] == 5
    for wrong, message in (("widht=2", "there is no parameter 'widht'"), ("width=x", "width: ")):
        refused = invoke("groupings", f"{mine}:{wrong}")
        assert (refused.exit_code, message in refused.stderr) == (2, True)
    # Defaults that are refused, as where one of two parameters must be given.
    refusing = "    def model_post_init(self, context):\n        raise ValueError('give one of two')\n"
    mine.write_text(mine.read_text().replace("width: int", "width: int = 1") + refusing)
    assert invoke("groupings", mine).exit_code == 0


def test_readers(invoke) -> None:
    rows = {row["reader"]: row for row in json.loads(invoke("readers", "--json").stdout)}
    assert {"csv", "jsonl", "parquet", "text", "slb", "wikibench"} <= set(rows)
    assert rows["wikibench"]["key"] == "url"


def test_synth_takes_the_generators_parameters(invoke, tmp_path) -> None:
    found = invoke(
        "synth", "zipf", "--tuples", 50, "--keys", 5, "--exponent", 0, "--rate", 10, "--start", "2024-01-01",
        "--seed", 4, "-o", tmp_path / "t", "--engine", "local", "--json",
    )  # fmt: skip
    assert json.loads(found.stdout)["tuples"] == 50
    manifest = json.loads((tmp_path / "t" / "trace.json").read_text())
    assert (manifest["seed"], manifest["first_timestamp"]) == (4, 1_704_067_200_000_000)
    assert manifest["generator_parameters"]["rate"] == 10


def test_summarize(invoke, trace, tmp_path) -> None:
    for name in ("sg", "kg"):
        invoke("replay", trace, "-g", name, "-n", "4", "-o", tmp_path / name)
    rows = json.loads(invoke("summarize", tmp_path, "--json", "--relative-to", "sg").stdout)
    assert [row["grouping"] for row in rows] == ["kg", "sg"]
    assert rows[0]["replicas_vs_sg"] < 1
    assert set(METRICS) <= set(rows[0])
    only = invoke("summarize", tmp_path, "--metrics", "replicas,imbalance", "--where", "grouping=kg", "--format", "csv")
    assert only.stdout.splitlines()[0].endswith("replicas,imbalance")
    assert len(only.stdout.splitlines()) == 2
    by = json.loads(invoke("summarize", tmp_path, "--by", "workers", "--json").stdout)
    assert by[0]["runs"] == 2
    held = invoke("summarize", tmp_path, "--fail-on", "peak_to_mean>4")
    assert held.exit_code == 0
    broken = invoke("summarize", tmp_path, "--fail-on", "peak_to_mean>1.2")
    assert broken.exit_code == 5
    assert broken.stdout == held.stdout
    assert "kg" in broken.stderr


def test_a_wide_table_that_is_piped_shows_every_digit(spawn, trace, tmp_path, invoke) -> None:
    invoke("replay", trace, "-g", "kg", "-n", "4", "-o", tmp_path / "run")
    done = spawn("summarize", tmp_path / "run", "--metrics", ",".join(METRICS), COLUMNS="80")
    head, _, line = done.stdout.splitlines()
    assert len(head) > 400
    assert set(METRICS) <= set(head.split())
    assert len(line.split()) == len(head.split())
    assert "\u2026" not in done.stdout
    assert "..." not in done.stdout


def test_doctor(invoke, monkeypatch) -> None:
    rows = {row["check"]: row for row in json.loads(invoke("doctor", "--json").stdout)}
    assert {"python", "java", "memory", "temporary files", "pyspark", "numba"} <= set(rows)
    found = invoke("doctor", JAVA_HOME="/nowhere")
    assert found.exit_code == 3
    assert "openjdk-17" in found.stderr


def test_doctor_reports_the_size_of_the_class_archives(invoke, tmp_path) -> None:
    def found() -> str:
        rows = {
            row["check"]: row
            for row in json.loads(invoke("doctor", "--json", STREAMGROUP_CACHE_DIR=str(tmp_path)).stdout)
        }
        return rows["class archives"]["found"]

    assert found() == f"{tmp_path / 'classes'}, 0 MB in 0 files"
    (tmp_path / "classes").mkdir()
    for name in ("a.jsa", "b.jsa", "c.other"):
        (tmp_path / "classes" / name).write_bytes(bytes(1_600_000))
    assert found() == f"{tmp_path / 'classes'}, 3 MB in 2 files"


@pytest.mark.parametrize(
    ("limit", "found"),
    [("1073741824", "1.0 GiB, ingest needs 2"), ("2147483648", "2.0 GiB, "), ("max", None), (None, None)],
)
def test_doctor_reports_the_memory_that_a_container_may_use(
    invoke, monkeypatch, tmp_path, limit: str | None, found: str | None
) -> None:
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    pages, sysconf = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 20}, os.sysconf
    monkeypatch.setattr(os, "sysconf", lambda name: pages[name] if name in pages else sysconf(name))
    if limit is not None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
    rows = {row["check"]: row for row in json.loads(invoke("doctor", "--json").stdout)}
    assert rows["memory"]["found"].startswith(found or "4.0 GiB, ")
    is_little = limit == "1073741824"
    assert rows["memory"]["state"] == ("missing" if is_little else "ok")
    assert ("container" in (rows["memory"]["how"] or "")) == is_little


@pytest.mark.parametrize("library", ["numba", "pyarrow", "pyspark", "numpy", "polars"])
def test_doctor_tells_of_a_library_that_cannot_be_imported(spawn, tmp_path, library) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{library!r}] = None\n")
    done = spawn("doctor", "--json", PYTHONPATH=str(tmp_path))
    assert done.returncode == 3
    rows = {row["check"]: row for row in json.loads(done.stdout)}
    assert (rows[library]["state"], rows[library]["how"]) == ("missing", f"pip install {library}")
    assert rows["python"]["state"] == "ok"
    assert "fault of the program" not in done.stderr


@pytest.mark.spark
def test_ingest(spawn, tmp_path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("timestamp,key\n" + "".join(f"{i},k{i % 7}\n" for i in range(300)) + "never,a\n")
    command = ("ingest", "csv", raw, "--master", "local[1]", "--driver-memory", "1g", "--json")
    done = spawn(*command, "-o", tmp_path / "t")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["tuples"], told["keys"], told["rows_rejected"]) == (300, 7, 1)
    assert told["rows_read"] == told["rows_kept"] + told["rows_rejected"] + told["rows_filtered"]
    assert "1 rows rejected" in done.stderr
    assert "WARN" not in done.stderr
    assert spawn("validate", tmp_path / "t").returncode == 0


def test_ingest_without_java_says_so_and_leaves_nothing(spawn, tmp_path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("timestamp,key\n1,a\n")
    done = spawn("ingest", "csv", raw, "-o", tmp_path / "t", JAVA_HOME="/nowhere")
    assert done.returncode == 3
    assert "install Java 17" in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["raw.csv"]


def test_numbers_of_papers_are_explained_where_they_are_used(invoke) -> None:
    text = invoke("groupings", "kg").stdout
    assert "(001 section II" in text
    assert "\n001: When Two Choices Are not Enough" in text
    assert "\n002: " not in text
    for name in (row["grouping"] for row in json.loads(invoke("groupings", "--json").stdout)):
        text = invoke("groupings", name).stdout
        for number in re.findall(r"\b(00[0-4])\b", text):
            assert f"\n{number}: " in text, name


def test_help_lists_options_by_what_they_are_about(invoke) -> None:
    text = invoke("replay", "--help").stdout
    heads = [line.removesuffix(":") for line in text.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert heads == [
        "Arguments",
        "Options",
        "Load",
        "Stages",
        "Workers and failures",
        "Seeds and keys",
        "Measuring",
        "Output",
    ]
    load, failures = text.index("\nLoad:"), text.index("\nWorkers and failures:")
    assert load < text.index("--arrivals") < failures < text.index("--crash") < text.index("\nMeasuring:")
    assert text.count("--quiet") == text.count("--service ") == 1
