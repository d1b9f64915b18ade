"""The traps of a compiled loop with a cache on disk, each sprung on purpose."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import streamgroup
from streamgroup.base.errors import RunError, StreamgroupError, UsageError
from streamgroup.replay.accounting.account import account
from streamgroup.replay.compile_grouping import COMMON, Code, cache_directory, check_shape, compiled
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.replay.simulation.choose import choose_block
from streamgroup.traces.trace import open_trace
from tests.traces_by_hand import write_trace

PACKAGE = Path(streamgroup.__file__).parent
PROGRAM = """
import json, sys
from streamgroup.replay import compile_grouping, interpreted_or_compiled, replay_trace
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.trace import open_trace
from streamgroup.engines import compile_key_functions as rules
# However few keys there are.
rules._FEW = -1
trace, grouping = sys.argv[1:]
made = {}
interpreted_or_compiled.compiled = lambda function, code: made.setdefault(
    function.__name__, compile_grouping.compiled(function, code)
)
outcome = replay_trace.replay(open_trace(trace), ReplayOptions(grouping=grouping, workers=4), interpreted=False)
stats = {name: dispatcher.stats for name, dispatcher in made.items()}
print(json.dumps({
    "loads": outcome.worker.tuples.tolist(),
    "loaded": sorted(name for name, one in stats.items() if sum(one.cache_hits.values())),
    "compiled": sorted(name for name, one in stats.items() if sum(one.cache_misses.values())),
}))
"""
HALVES = ["account", "choose_block"]
OUTSIDE = """
from typing import NamedTuple
from streamgroup.groupings.protocol import Context, GroupingParams

class Params(GroupingParams):
    pass

class Fixed(NamedTuple):
    worker: int

    def choose(self, source: int, key: int, now: int) -> int:
        return self.worker if key != 1 else %d

def start(params: Params, context: Context) -> Fixed:
    return Fixed(1)
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tuples = [(place * 1000, b"k%d" % (place % 10), None) for place in range(1000)]
    return write_trace(tmp_path_factory.mktemp("compile") / "t", tuples)


@pytest.fixture(scope="module")
def kafka_code(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A cache that has what kafka is compiled into, and the loads of its run."""
    cache = tmp_path_factory.mktemp("kafka")
    return cache, result(begin(trace, "kafka", cache))["loads"]


def begin(trace: Path, grouping: str, cache: Path, package: Path = PACKAGE) -> "subprocess.Popen[str]":
    env = {**os.environ, "STREAMGROUP_CACHE_DIR": str(cache), "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", PROGRAM, str(trace), grouping]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=package.parent)


def result(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(out)
    return found


def interpreted_loads(trace: Path, grouping: str) -> list[int]:
    outcome = replay(open_trace(trace), ReplayOptions(grouping=grouping, workers=4), interpreted=True)
    loads: list[int] = outcome.worker.tuples.tolist()
    return loads


def test_an_edited_grouping_or_kernel_runs_as_edited(trace: Path, tmp_path: Path) -> None:
    package = tmp_path / "copy" / "streamgroup"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    before = result(begin(trace, "pkg", cache, package))
    assert before["loads"] == interpreted_loads(trace, "pkg")
    again = result(begin(trace, "pkg", cache, package))
    assert (again["loaded"], again["compiled"]) == (HALVES, [])
    kernel = package / "kernels" / "least_loaded_of_few.py"
    edited = re.sub(r"return np\.int64\(first\) \+ .*", "return np.int64(3)", kernel.read_text())
    assert edited != kernel.read_text()
    kernel.write_text(edited)
    edited_run = result(begin(trace, "pkg", cache, package))
    assert edited_run["loads"] == [0, 0, 0, 1000]
    # The common half is not made from it.
    assert edited_run["compiled"] == ["choose_block"]


EDITS = {
    "groupings/pkg.py": [],
    "groupings/kg.py": ["choose_block"],
    "kernels/hash_ring.py": ["choose_block"],
    "kernels/latency_histogram.py": ["account"],
    "replay/simulation/serve.py": ["account"],
    "replay/simulation/optional_array_elements.py": HALVES,
    "cluster/service_time.py": HALVES,
    "replay/compile_grouping.py": HALVES,
}
DIRECTORIES = """
import json, sys
from pathlib import Path
from streamgroup.base.compiling import code_cache
from streamgroup.replay import compile_grouping
from streamgroup.replay.accounting.account import account
from streamgroup.replay.simulation.choose import choose_block
root = Path(compile_grouping.__file__).parents[1]

def directories():
    code_cache.imported_digest.cache_clear()
    code_cache._imported.cache_clear()
    kg = compile_grouping.Code("kg", ("streamgroup.cluster.service_time", "streamgroup.groupings.kg"))
    directory = compile_grouping.cache_directory
    return {"account": directory(account), "choose_block": directory(choose_block, kg)}

found, before = {}, directories()
for edited in sys.argv[1:]:
    text = (root / edited).read_text()
    (root / edited).write_text(text + "\\n# Edited.\\n")
    now = directories()
    found[edited] = [name for name in before if now[name] != before[name]]
    (root / edited).write_text(text)
print(json.dumps(found))
"""


def test_an_edit_is_another_cache_of_what_is_made_from_it(tmp_path: Path) -> None:
    package = tmp_path / "streamgroup"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "STREAMGROUP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", DIRECTORIES, *EDITS]
    assert result(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=tmp_path)) == EDITS


def test_a_cold_start_side_by_side_mixes_nothing_up(trace: Path, tmp_path: Path) -> None:
    texts = ["kg", "sg", "kg"]
    started = [begin(trace, text, tmp_path) for text in texts]
    for text, process in zip(texts, started, strict=True):
        assert result(process)["loads"] == interpreted_loads(trace, text)
    index = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert {"choose.choose_block_kg", "choose.choose_block_sg", "account.account_any"} <= index


@pytest.mark.parametrize("kind", ["nbi", pytest.param("nbc", marks=pytest.mark.slow)])
def test_damaged_code_is_made_anew(trace: Path, kafka_code: tuple[Path, list[int]], tmp_path: Path, kind: str) -> None:
    kept, loads = kafka_code
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    files = list(tmp_path.rglob(f"*.{kind}"))
    # That of the simulation, and that of the rule in the other cache.
    assert {path.relative_to(tmp_path).parts[0] for path in files} == {"compiled", "engines"}
    for path in files:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    mended = result(begin(trace, "kafka", tmp_path))
    assert (mended["loads"], mended["loaded"], mended["compiled"]) == (loads, [], HALVES)
    again = result(begin(trace, "kafka", tmp_path))
    assert (again["loads"], again["loaded"], again["compiled"]) == (loads, HALVES, [])


def test_code_that_needs_the_compilers_memory_runs_where_nothing_was_compiled(trace: Path, tmp_path: Path) -> None:
    # Unlike pkg's and kafka's it ends the process if the compiler's memory management has not begun.
    first, second = (result(begin(trace, "d_choices", tmp_path)) for _ in range(2))
    assert set(HALVES) < set(first["compiled"])
    assert (second["loaded"], second["compiled"]) == (first["compiled"], [])
    assert first["loads"] == second["loads"] == interpreted_loads(trace, "d_choices")


KERNEL = """
import json
from streamgroup.kernels import int_map
from streamgroup.kernels.compiling import call_kernel
# However small the arrays are.
call_kernel._MOST_CALLED = -1
table = int_map.make_int_map(8)
int_map.put.py_func(table, 5, 7)
larger = int_map.enlarged(table, 64)
stats = call_kernel._kept(int_map._copy).stats
print(json.dumps([int(int_map.get.py_func(larger, 5)), len(stats.cache_hits), len(stats.cache_misses)]))
"""


def test_a_kernel_that_python_calls_is_compiled_once(tmp_path: Path) -> None:
    def run() -> Any:
        env = {**os.environ, "STREAMGROUP_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}
        command = [sys.executable, "-c", KERNEL]
        found = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=600)
        return json.loads(found.stdout)

    assert run() == [7, 0, 1]
    assert run() == [7, 1, 0]


def test_where_code_cannot_be_kept_it_is_made(trace: Path, kafka_code: tuple[Path, list[int]], tmp_path: Path) -> None:
    kept, loads = kafka_code
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.rglob("*.nbi"):
        path.unlink()
        path.mkdir()
    again = result(begin(trace, "kafka", tmp_path))
    assert (again["loads"], again["compiled"]) == (loads, HALVES)


def test_a_grouping_outside_is_cached_until_it_changes(
    trace: Path, kafka_code: tuple[Path, list[int]], tmp_path: Path
) -> None:
    # The half that all groupings have in common is there.
    shutil.copytree(kafka_code[0], tmp_path / "cache")
    file = tmp_path / "mine.py"
    file.write_text(OUTSIDE % 2)
    first = result(begin(trace, str(file), tmp_path / "cache"))
    second = result(begin(trace, str(file), tmp_path / "cache"))
    assert first["loads"] == second["loads"] == [0, 900, 100, 0]
    assert (second["loaded"], second["compiled"]) == (HALVES, [])
    file.write_text(OUTSIDE % 0)
    assert result(begin(trace, str(file), tmp_path / "cache"))["loads"] == [100, 900, 0, 0]


def test_every_kind_of_run_without_extras_is_one_compilation(trace: Path) -> None:
    opened = open_trace(trace)
    runs = [
        ReplayOptions(grouping="kg", workers=3),
        ReplayOptions(grouping="kg", workers=70, arrivals="rate=100", window="7"),
        ReplayOptions(grouping="kg", workers=3, arrivals="poisson=100", network_delay="1ms", slowdown="1,2"),
        ReplayOptions(grouping="kg", workers=3, spread_ties=True, speedup="0.7", service="3ms"),
    ]
    modules = ("streamgroup.cluster.service_time", "streamgroup.groupings.kg")
    made: list[Any] = [
        compiled(choose_block, Code("kg", modules)),
        compiled(account, COMMON),
    ]
    before = [len(one.signatures) for one in made]
    for options in runs:
        replay(opened, options, interpreted=False)
    assert all(len(one.signatures) - count <= 1 for one, count in zip(made, before, strict=True))
    assert all(one.signatures for one in made)


def test_the_cache_directory_names_the_code() -> None:
    here, outside = cache_directory(account), cache_directory(account, Code("mine", (), "0123"))
    assert here != outside
    assert here.parent == outside.parent


class NoChoose(NamedTuple):
    x: int


class WrongNames(NamedTuple):
    x: int

    def choose(self, source: int, k: int, now: int) -> int:
        return 0


class Helper(NamedTuple):
    x: int

    def choose(self, source: int, key: int, now: int) -> int:
        return 0

    def helper(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ([1], "must return a NamedTuple"),
        (NoChoose(1), "no method choose"),
        (WrongNames(1), r"choose must take \(self, source, key, now\)"),
        (Helper(1), "helper is not a hook"),
    ],
)
def test_a_wrong_shape_is_told_in_one_line(state: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        check_shape(state, "mine")
    assert "\n" not in error.value.message


@pytest.mark.parametrize("line", ['x = "a" + key', "x = np.zeros(3)", "x = self.nothing", "x = start(1)"])
def test_what_numba_cannot_compile_is_told_with_its_line(trace: Path, tmp_path: Path, line: str) -> None:
    file = tmp_path / "mine.py"
    body = (OUTSIDE % 2).replace("        return self", f"        {line}\n        return self")
    file.write_text("import numpy as np\n" + body)
    with pytest.raises(UsageError, match=r"mine\.py:13: numba cannot compile this line") as error:
        replay(open_trace(trace), ReplayOptions(grouping=str(file), workers=4))
    assert f"this line: {line} (" in error.value.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x = 1", "has no Params"),
        ("def (", "does not import: SyntaxError"),
        ("import nothing_of_that_name", "does not import: ModuleNotFoundError"),
    ],
)
def test_a_broken_file_is_told_in_one_line(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(content)
    with pytest.raises(UsageError, match=words):
        select(str(file))


def test_arrays_of_the_trace_are_read_only(trace: Path) -> None:
    for batch in open_trace(trace).batches():
        assert isinstance(batch.timestamp, np.ndarray)
        assert not batch.timestamp.flags.writeable


def test_what_fails_in_start_is_told(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text((OUTSIDE % 2).replace("return Fixed(1)", "return Fixed(1 // 0)"))
    with pytest.raises(RunError, match=r"start\(\) failed: ZeroDivisionError"):
        replay(open_trace(trace), ReplayOptions(grouping=str(file), workers=4))


def test_a_name_that_numba_does_not_find_is_told(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text((OUTSIDE % 2).replace("return self.worker", "return nowhere + self.worker"))
    with pytest.raises(UsageError, match=r"mine\.py.*name 'nowhere' is not defined"):
        replay(open_trace(trace), ReplayOptions(grouping=str(file), workers=4))


def test_what_fails_in_a_hook_is_told(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text((OUTSIDE % 2).replace("return self.worker", "return 1 // (key - key) + self.worker"))
    with pytest.raises(RunError, match=r"mine\.py: a hook failed: ZeroDivisionError"):
        replay(open_trace(trace), ReplayOptions(grouping=str(file), workers=4))


@pytest.mark.parametrize("place", ["top", "start"])
def test_a_grouping_cannot_end_the_program(trace: Path, tmp_path: Path, place: str) -> None:
    file = tmp_path / "mine.py"
    content = OUTSIDE % 2
    stop = "raise SystemExit(0)"
    file.write_text(stop + content if place == "top" else content.replace("return Fixed(1)", stop))
    with pytest.raises(StreamgroupError, match="SystemExit"):
        replay(open_trace(trace), ReplayOptions(grouping=str(file), workers=4))


def test_what_a_grouping_prints_is_no_result(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text("print('top')" + (OUTSIDE % 2).replace("return Fixed(1)", "print('start'); return Fixed(1)"))
    replay(open_trace(trace), ReplayOptions(grouping=str(file), workers=4), interpreted=True)
    assert capsys.readouterr() == ("", "top\nstart\n")


def test_an_edited_helper_beside_a_grouping_runs_as_edited(
    trace: Path, kafka_code: tuple[Path, list[int]], tmp_path: Path
) -> None:
    helper = tmp_path / "my_helper.py"
    helper.write_text("from numba import njit\n\n@njit\ndef pick():\n    return 0\n")
    file = tmp_path / "mine.py"
    top = "import sys; sys.path.insert(0, __file__.rpartition('/')[0])\nfrom my_helper import pick\n"
    file.write_text(top + (OUTSIDE % 2).replace("return self.worker if key != 1 else 2", "return pick()"))
    # The half that all groupings have in common is there.
    cache = shutil.copytree(kafka_code[0], tmp_path / "cache")
    assert result(begin(trace, str(file), cache))["loads"] == [1000, 0, 0, 0]
    assert result(begin(trace, str(file), cache))["compiled"] == []
    helper.write_text(helper.read_text().replace("return 0", "return 2"))
    assert result(begin(trace, str(file), cache))["loads"] == [0, 0, 1000, 0]


def test_every_compilation_holds_the_lock_of_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a later one, for other types: whoever holds the lock of the function holds it up."""
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path))
    compiled.cache_clear()
    try:
        function = compiled(twice, COMMON)
        assert function(2) == 4
        with (cache_directory(twice) / ".twice_any.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            thread = threading.Thread(target=function, args=(2.5,))
            thread.start()
            thread.join(1)
            assert thread.is_alive()
            # What is compiled already needs no lock.
            assert function(3) == 6
        thread.join(60)
        assert not thread.is_alive()
    finally:
        compiled.cache_clear()


def twice(number: Any) -> Any:
    """What the test above compiles."""
    return 2 * number
