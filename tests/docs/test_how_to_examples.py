"""The examples of the how-to pages work as they are printed."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from streamgroup.base.errors import UsageError
from streamgroup.groupings import detectors
from streamgroup.ingest.files.inputs_and_splits import plan_splits, resolve_inputs
from streamgroup.ingest.options import make_options
from streamgroup.ingest.pipeline.check_and_filter_rows import Contract
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.synth.generate_trace import synthesise
from streamgroup.traces.trace import Trace, open_trace
from tests.docs.console_blocks import DOCS, ROOT, steps

EXAMPLES = [
    ("tutorial.md", "streamgroup/groupings/hot_shuffle.py"),
    ("adding-a-grouping.md", "streamgroup/groupings/reported.py"),
    ("detectors.md", "streamgroup/groupings/detectors/twice.py"),
    ("adding-a-reader.md", "streamgroup/ingest/readers/messages.py"),
    ("adding-a-reader.md", "streamgroup/ingest/readers/calls.py"),
]


def _save(page: str, name: str, directory: Path) -> Path:
    code = next(step.command for step in steps((DOCS / page).read_text()) if step.file == name)
    path = directory / name
    path.write_text(code)
    return path


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def zipf(tmp_path: Path) -> Trace:
    synthesise("zipf", {"tuples": 20_000, "keys": 500}, tmp_path / "zipf.trace")
    return open_trace(tmp_path / "zipf.trace")


@pytest.mark.parametrize(("page", "place"), EXAMPLES)
def test_a_file_copied_from_a_page_passes_the_checks_of_a_clone(page: str, place: str, tmp_path: Path) -> None:
    code = _save(page, Path(place).name, tmp_path).read_bytes()
    for command in (("check",), ("format", "--check")):
        told = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--stdin-filename", place, "-"],
            input=code,
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        assert told.returncode == 0, told.stdout.decode()


@pytest.mark.parametrize("name", ["hot_shuffle.py", "reported.py"])
def test_grouping_runs_compiled_as_interpreted(name: str, zipf: Trace, tmp_path: Path) -> None:
    page = "tutorial.md" if name == "hot_shuffle.py" else "adding-a-grouping.md"
    path = _save(page, name, tmp_path)
    options = ReplayOptions(str(path), 8, arrivals="utilization=0.8", control_delay="2ms", slowdown="half:2")
    compiled, interpreted = replay(zipf, options), replay(zipf, options, interpreted=True)
    assert np.array_equal(compiled.worker.tuples, interpreted.worker.tuples)
    assert compiled.worker.latency_sum_ns == interpreted.worker.latency_sum_ns


def test_reports_help_where_workers_differ(zipf: Trace, tmp_path: Path) -> None:
    path = _save("adding-a-grouping.md", "reported.py", tmp_path)
    means = []
    for grouping in ("sg", str(path)):
        outcome = replay(zipf, ReplayOptions(grouping, 8, arrivals="utilization=0.8", slowdown="half:2"))
        means.append(sum(outcome.worker.latency_sum_ns) / outcome.tuples)
    assert means[1] < means[0] / 2


def test_reports_must_not_overlap(zipf: Trace, tmp_path: Path) -> None:
    path = _save("adding-a-grouping.md", "reported.py", tmp_path)
    with pytest.raises(UsageError, match="interval_ms=10 is not longer"):
        replay(zipf, ReplayOptions(str(path), 8, control_delay="10ms"))


def test_detector(zipf: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save("detectors.md", "twice.py", tmp_path)
    monkeypatch.setattr(detectors, "__path__", [*detectors.__path__, str(tmp_path)])
    options = ReplayOptions("w_choices:detector=twice", 8, arrivals="utilization=0.8")
    compiled, interpreted = replay(zipf, options), replay(zipf, options, interpreted=True)
    assert np.array_equal(compiled.worker.tuples, interpreted.worker.tuples)
    # It finds hot keys: they are on more than two workers.
    pkg = replay(zipf, ReplayOptions("pkg", 8, arrivals="utilization=0.8"))
    assert compiled.worker.tuples.max() < pkg.worker.tuples.max()


def test_reader(tmp_path: Path) -> None:
    reader = _load(_save("adding-a-reader.md", "messages.py", tmp_path)).Reader
    raw = tmp_path / "raw.txt"
    raw.write_bytes(b"1 2 1082040961\n3 4 1082155839\n1 5\n")
    options = make_options(reader="messages", inputs=(str(raw),), output="unused")
    member, contract = reader(options), Contract(options)
    (split,) = plan_splits(member, resolve_inputs(options.inputs))
    layout = member.layout(split.path)
    (parsed,) = member.batches(split, layout)
    found = contract.apply(parsed, layout)
    assert found.timestamp.tolist() == [1082040961_000000, 1082155839_000000]
    assert found.key.to_pylist() == [b"1", b"3"]
    assert [(reject.line, reject.reason) for reject in found.rejects] == [(3, "wrong number of fields")]


@pytest.mark.parametrize(("own", "keys"), [({}, [b"4912345", b"33999"]), ({"prefix": 2}, [b"49", b"33"])])
def test_reader_with_an_option(own: dict[str, int], keys: list[bytes], tmp_path: Path) -> None:
    reader = _load(_save("adding-a-reader.md", "calls.py", tmp_path)).Reader
    raw = tmp_path / "raw.txt"
    raw.write_bytes(b"4912345 1082040961\n33999 1082155839\n")
    options = make_options(reader="calls", inputs=(str(raw),), output="unused", reader_options=own)
    member = reader(options)
    (split,) = plan_splits(member, resolve_inputs(options.inputs))
    layout = member.layout(split.path)
    (parsed,) = member.batches(split, layout)
    assert Contract(options).apply(parsed, layout).key.to_pylist() == keys
    with pytest.raises(UsageError, match="prefix"):
        reader(make_options(reader="calls", inputs=(str(raw),), output="unused", reader_options={"prefix": 0}))
