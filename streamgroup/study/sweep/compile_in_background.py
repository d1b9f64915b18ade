"""Compiles simulations in other processes while runs go on: numba compiles one function at a time in a process.

`python -m streamgroup.study.sweep.compile_in_background TRACE` compiles, and keeps on disk, the code of the runs whose
options it reads, an object of JSON a line. A process that needs code that is being compiled waits for the lock of its
name, and finds it on disk.
"""

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from streamgroup.base.errors import StreamgroupError
from streamgroup.replay.compile_grouping import names_on_disk, version_directory
from streamgroup.replay.interpreted_or_compiled import SMALL
from streamgroup.replay.replay_trace import replay
from streamgroup.replay.scenario.grouping_selection import Selection, select
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.study.rate_search import at_capacity
from streamgroup.study.run_option_columns import readable
from streamgroup.traces.trace import Trace, open_trace
from streamgroup.traces.trace_segment import take_slice

__all__ = ["compile_ahead", "not_compiled", "note_of_compiling"]

# Tuples of all runs of a small trace from which on others compile. Interpreted, so many take some 20 s.
_MANY = 1_000_000
# Tuples of a run that is made for its code.
_FEW = 1000


def not_compiled(runs: Sequence[ReplayOptions]) -> list[ReplayOptions]:
    """Return one run for each loop of which no code is on disk, in their order."""
    there = {name.partition("-")[0] for name in names_on_disk()}
    found: dict[str, ReplayOptions] = {}
    for run in runs:
        with contextlib.suppress(StreamgroupError):
            chosen = select(run.grouping)
            if not chosen.outside_digest and not any(name.endswith(_code(chosen)) for name in there):
                found.setdefault(chosen.code_name, run)
    return list(found.values())


def note_of_compiling(runs: Sequence[ReplayOptions]) -> str | None:
    """Say that an estimate of time is that of compiled code, where some of the runs' code is not compiled yet."""
    names = [readable(select(run.grouping).name) for run in not_compiled(runs)]
    if not names:
        return None
    return (
        f"not compiled yet: {', '.join(names)}; compiling takes 1 to 15 s each, which the estimate leaves out, or a "
        "small trace is interpreted, at some 30,000 to 100,000 tuples a second"
    )


def _code(chosen: Selection) -> str:
    """Return what the name of its code ends in (see `compile_grouping.compiled`)."""
    return "_" + "".join(char if char.isalnum() else "_" for char in chosen.code_name)


@contextlib.contextmanager
def compile_ahead(trace: Trace, runs: Sequence[ReplayOptions], jobs: int, tuples: int | None = None) -> Iterator[None]:
    """Let up to `jobs` - 1 processes compile what runs of a trace need, the last first, meanwhile.

    Of a small trace what is not compiled yet is interpreted, one run at a time: few `tuples` in all (None: the trace's,
    once for each run) need nobody. The processes are ended when the runs are.
    """
    is_large = trace.tuples > SMALL
    tuples = trace.tuples * len(runs) if tuples is None else tuples
    wanted = _not_marked(runs) if is_large or tuples > _MANY else []
    # Of a large trace the first run compiles for itself.
    count = min(jobs - 1, len(wanted) - is_large)
    started = [_start(trace, wanted[::-1][place::count]) for place in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def _not_marked(runs: Sequence[ReplayOptions]) -> list[ReplayOptions]:
    """Return one run for each kind that no process has compiled ahead with this version of the code, in their order."""
    marks, found = version_directory("ahead"), dict[Path, ReplayOptions]()
    for run in runs:
        with contextlib.suppress(StreamgroupError):
            if not select(run.grouping).outside_digest:
                found.setdefault(_mark(marks, run), run)
    return [run for mark, run in found.items() if not mark.exists()]


def _mark(marks: Path, run: ReplayOptions) -> Path:
    """Return the file that says that a run was compiled ahead: the same for options that differ in numbers alone.

    The files of a run's code do not say so: which functions it calls, for which types, follows from its plan.
    """
    kind = llvm.get_host_cpu_name() + re.sub(r"\d[\d.]*", "0", json.dumps(asdict(run)))
    return marks / hashlib.sha256(kind.encode()).hexdigest()[:16]


def _start(trace: Trace, runs: Sequence[ReplayOptions]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "streamgroup.study.sweep.compile_in_background", str(trace.path)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as lines:
        lines.writelines(json.dumps(asdict(run)) + "\n" for run in runs)
    return process


def _main(path: str) -> None:
    parent = os.getppid()
    trace = open_trace(path)
    piece = take_slice(trace, 0, min(_FEW, trace.tuples))
    marks = version_directory("ahead")
    for line in sys.stdin:
        if os.getppid() != parent:
            return
        given: dict[str, Any] = json.loads(line)
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        run = ReplayOptions(**given)
        # A run reports its own errors; times that lie behind the piece are wrong here only.
        with contextlib.suppress(StreamgroupError):
            replay(piece, at_capacity(run), interpreted=False)
        _mark(marks, run).touch()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _main(sys.argv[1])
