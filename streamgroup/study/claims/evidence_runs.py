"""What claims are judged by: runs the sweeps that they read, each once, and evaluates statements of theory."""

import itertools
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from streamgroup.base.errors import UsageError
from streamgroup.base.progress import Watcher
from streamgroup.base.storage.atomic_files import write_files
from streamgroup.study.bounds.evaluate_statements import Bounds, bounds
from streamgroup.study.claims.claim import Paper, Scale
from streamgroup.study.claims.read_sweep import SweepReading, read_sweep
from streamgroup.study.claims.values_of_runs import Value, series_of
from streamgroup.study.sweep.plan_sweep import plan_sweep, run_planned
from streamgroup.study.sweep.synth_traces import synth_traces

__all__ = ["SWEEPS", "EvidenceRuns"]

SWEEPS = "sweeps"


class EvidenceRuns:
    """The sweeps of a paper at a scale, in a directory; those that are there are resumed, and run when they are read.

    Synthetic traces are shared by all sweeps of the directory.
    """

    def __init__(self, paper: Paper, scale: Scale, output: Path, jobs: int | None, progress: Watcher) -> None:
        self._paper = paper
        self._scale = scale
        self._output = output
        self._jobs = jobs
        self._progress = progress
        self._sweeps: dict[str, SweepReading] = {}
        self._bounds: dict[Any, Bounds] = {}

    def read(self, sweep: str, name: str, given: Mapping[str, Any]) -> Value:
        """Read a sweep, see `SweepReading.read`."""
        if sweep not in self._sweeps:
            self._sweeps[sweep] = self._run(sweep)
        value: Value = self._sweeps[sweep].read(name, given)
        return value

    def has_run(self, sweeps: Iterable[str]) -> bool:
        """Return whether sweeps have been read before."""
        return self._sweeps.keys() >= set(sweeps)

    def theory(self, given: Mapping[str, Any]) -> Value:
        """Return the value of a statement of `bounds` for a Zipf stream: `name`, `z`, `keys`, `tuples`, `n`.

        Also `grouping` and `sources`. Each may be a list: the values are a series then. The statement `workers` is n.
        UsageError for another name.
        """
        defaults = {"z": 1.0, "keys": 10_000, "tuples": 10_000_000, "n": 100, "grouping": None, "sources": None}
        if unknown := set(given) - {"name", *defaults}:
            raise UsageError(f"theory has no {sorted(unknown)[0]!r}")
        values = {**defaults, **given}
        lists = [value if isinstance(value, list) else [value] for value in values.values()]
        found: dict[tuple[Any, ...], Any] = {}
        for key in itertools.product(*lists):
            asked = dict(zip(values, key, strict=True))
            found[key] = self._theory(asked)
        names = {"z": "exponent", "n": "workers"}
        return series_of([names.get(name, name) for name in values], found)

    def _theory(self, asked: dict[str, Any]) -> Any:
        if asked["name"] == "workers":
            return asked["n"]
        return self._statements(asked)[asked["name"]].value

    def _statements(self, asked: dict[str, Any]) -> Bounds:
        law = f"zipf:z={asked['z']},keys={asked['keys']},tuples={asked['tuples']}"
        key = (law, asked["n"], asked["grouping"], asked["sources"])
        if key not in self._bounds:
            self._bounds[key] = bounds(law, asked["n"], grouping=asked["grouping"], sources=asked["sources"])
        return self._bounds[key]

    def _run(self, name: str) -> SweepReading:
        spec = self._paper.sweep(name, self._scale)
        directory = self._output / SWEEPS / f"{self._paper.name}-{name}"
        file = directory.with_name(f"{directory.name}.toml")
        made = synth_traces(spec.pop("synth", ()), self._output, self._progress)
        spec["traces"] = [*spec.get("traces", ()), *(str(Path(path).absolute()) for path in made)]
        file.parent.mkdir(parents=True, exist_ok=True)
        # What JSON says of texts, numbers and lists of them is TOML, too.
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in spec.items()]
        write_files({file: "".join(lines).encode()}, overwrite=True)
        begun = time.perf_counter()
        planned = plan_sweep([str(file)], {}, directory, progress=self._progress)
        result = run_planned(planned, jobs=self._jobs, progress=self._progress)
        seconds = time.perf_counter() - begun
        self._progress.note(f"sweep {self._paper.name}-{name}: {result.ran} runs in {seconds:.1f} s")
        return read_sweep(name, planned, result)
