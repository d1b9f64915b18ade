"""Many runs, what can be said without one, and claims: from `sweep` to `reproduce`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from streamgroup.api.option_types import AdviseKeywords, ExplainKeywords, SweepKeywords
from streamgroup.base.progress import Progress, Watcher

if TYPE_CHECKING:
    import polars as pl

    from streamgroup.base.storage.storage_path import StoragePath
    from streamgroup.study.advise.advise import Advice
    from streamgroup.study.bounds.evaluate_statements import Bounds
    from streamgroup.study.claims.reproduce import Reproduction
    from streamgroup.study.explain.explain_loads import Explanation
    from streamgroup.study.summary.compare_runs import Comparison
    from streamgroup.study.sweep.plan_sweep import PlannedSweep

__all__ = [
    "Sweep", "advise", "bounds", "check_gate", "compare", "explain", "load_runs", "planned_sweep", "reproduce",
    "summarize", "sweep",
]  # fmt: skip

# Options of which a sweep takes several values, besides the grouping.
_SEVERAL = ("workers", "sources", "arrivals", "capacity", "seed", "synth")
_SPARK = ("master", "remote", "spark_conf", "driver_memory")


@dataclass(frozen=True)
class Sweep:
    """What a sweep gave: a row for each cell, with its options, `status`, `error` and metrics.

    `ran`, `reused` and `failed` are numbers of cells; `warnings` are sentences by cell, `notes` those on the whole.
    `output` is the directory of the sweep, None where none was asked for.
    """

    rows: list[dict[str, Any]] = field(repr=False)
    ran: int
    reused: int
    failed: int
    warnings: Mapping[str, list[str]] = field(repr=False)
    notes: list[str] = field(repr=False)
    output: Path | None

    @property
    def summary(self) -> "pl.DataFrame":
        """Return the rows as a Polars frame, as `summary.parquet` of the sweep has them."""
        import polars as pl

        from streamgroup.study.sweep.summary_rows import as_table

        frame = pl.from_arrow(as_table(self.rows))
        assert isinstance(frame, pl.DataFrame)
        return frame


def sweep(
    inputs: "str | Path | StoragePath | Sequence[str | Path | StoragePath]" = (),
    grouping: str | Path | Sequence[str | Path] = (),
    workers: int | str | Sequence[int | str] = (),
    *,
    output: str | Path | None = None,
    overwrite: bool = False,
    jobs: int | None = None,
    progress: Watcher | None = None,
    **options: Unpack[SweepKeywords],
) -> Sweep:
    """Replay every combination of traces, groupings and options.

    `inputs` are traces, or a TOML file that says what to run; `synth` are traces to be made in `output`, as in
    `"zipf:exponent=0.8..2.0..0.2"`. `grouping`, `workers`, `sources`, `arrivals`, `capacity`
    and `seed` take one value or several; `seeds=3` is three replicates. A cell that fails is a row with its `error`;
    the others continue. With `output` every cell is kept as a run in that directory, and a sweep that is there is
    resumed; without, only the rows are kept. Cells run in `jobs` threads (the number of cores), or on Spark with
    `master` or `remote`. Other options are the flags of `streamgroup sweep`.

    Raises UsageError for what is wrong in itself, DataError for a trace that is not sound or empty.
    """
    import tempfile

    from streamgroup.api.option_texts import spark_values
    from streamgroup.study.sweep.plan_sweep import run_planned, spark_of

    spark = spark_of(spark_values(options), jobs)
    given: dict[str, Any] = {"grouping": grouping, "workers": workers, **options}
    with tempfile.TemporaryDirectory(prefix="streamgroup-") as scratch:
        place = Path(scratch) / "sweep" if output is None else Path(output)
        planned = planned_sweep(inputs, given, place, overwrite=overwrite, progress=progress)
        if progress is not None:
            for note in planned.notes:
                progress.note(note)
        result = run_planned(planned, jobs=jobs, spark=spark, progress=progress)
    kept = None if output is None else place
    return Sweep(result.rows, result.ran, result.reused, result.failed, result.warnings, planned.notes, kept)


def planned_sweep(
    inputs: Any,
    given: Mapping[str, Any],
    output: Path,
    *,
    overwrite: bool = False,
    progress: Watcher | None = None,
) -> "PlannedSweep":
    """Plan a sweep with options by the names of `sweep`; UsageError and DataError as there."""
    from streamgroup.api.make_options import known_only, made_options
    from streamgroup.api.option_texts import listed, text
    from streamgroup.base.storage.storage_path import StoragePath
    from streamgroup.study.sweep.plan_sweep import plan_sweep

    known_only("sweep", given, {"grouping", "workers", *SweepKeywords.__annotations__})
    values: dict[str, Any] = {"groupings": listed(given.get("grouping"))}
    for name in _SEVERAL:
        values[name] = listed(given.get(name))
    for name in ("seeds", "baseline"):
        values[name] = given.get(name)
    # An empty list and None stand for what is not given: the file may say it.
    values = {name: value for name, value in values.items() if value not in ([], None)}
    aside = {"grouping", *_SEVERAL, "seeds", "baseline", *_SPARK}
    shared = {name: value for name, value in given.items() if name not in aside and value is not None}
    checked = vars(made_options("", 1, shared))
    values |= {name: checked[name] for name in shared}
    several = [inputs] if isinstance(inputs, str | Path | StoragePath) else inputs
    places = [one.reference if isinstance(one, StoragePath) else text(one) for one in several]
    return plan_sweep(places, values, output, overwrite=overwrite, progress=progress)


def load_runs(runs: str | Path | Iterable[str | Path]) -> "pl.DataFrame":
    """Read run directories, sweeps, or directories that hold some runs: one row a run, all options and metrics.

    Cells of sweeps that failed are rows without metrics, with `status` and `error`. UsageError for a path that holds no
    run, DataError for what is damaged or of another version of the tables.
    """
    from streamgroup.study.summary.summarize import load_runs

    return load_runs([runs] if isinstance(runs, str | Path) else runs, failed=True)


def summarize(
    runs: "pl.DataFrame | str | Path | Iterable[str | Path]",
    *,
    by: Sequence[str] | str = (),
    metrics: Sequence[str] | str = (),
    where: str | None = None,
    relative_to: str | None = None,
) -> "pl.DataFrame":
    """Read runs (or take what `load_runs` gave) into one table: chosen, averaged, compared with a baseline.

    With `by` a row for each combination of these columns: mean, `<metric>_min`, `<metric>_max` and `<metric>_ci95` of
    each metric. `where` is written as in `"workers>=16,grouping=pkg"`. `relative_to` adds ratios to a grouping.
    UsageError for names that do not exist.
    """
    import polars as pl

    from streamgroup.study.summary.summarize import summarize

    frame = runs if isinstance(runs, pl.DataFrame) else load_runs(runs)
    return summarize(frame, by=_names(by), metrics=_names(metrics), where=where, relative_to=relative_to)


def compare(
    old: str | Path | Iterable[str | Path],
    new: str | Path | Iterable[str | Path],
    *,
    metrics: Sequence[str] | str = (),
) -> "Comparison":
    """Compare runs before and after a change: run directories, sweeps, or directories that hold some.

    Cells are matched by trace and options. `table` has `old`, `new` and `change` (a share of the old value) of each
    metric, `only_old` and `only_new` name the cells without a partner, and `broken("latency_p99_ms>+5%")` returns a
    sentence for each pair that breaks a gate. UsageError for paths without runs and unknown metrics.
    """
    from streamgroup.study.summary.compare_runs import compare

    before, after = ([side] if isinstance(side, str | Path) else side for side in (old, new))
    return compare(before, after, _names(metrics))


def check_gate(table: "pl.DataFrame", condition: str) -> list[str]:
    """Return a sentence for each row of a summary where a `--fail-on` condition is true; none when the gate holds."""
    from streamgroup.study.summary.summarize import check_gate

    return check_gate(table, condition)


def _names(names: Sequence[str] | str) -> Sequence[str]:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def advise(
    trace: "str | Path | StoragePath",
    workers: int | None = None,
    *,
    max_p99: float | None = None,
    max_replication: float | None = None,
    grouping: str | Path | Sequence[str | Path] = (),
    budget: float = 60.0,
    jobs: int | None = None,
    progress: Watcher | None = None,
    **options: Unpack[AdviseKeywords],
) -> "Advice":
    """Recommend a grouping for a trace and a number of workers: `print(advise("t.trace", 48))`.

    Without `workers`, which needs `max_p99`, it recommends a number of workers, too.

    `max_p99` (ms) and `max_replication` (state entries a key) are targets; `grouping` are asked besides the usual ones.
    Replays the trace, or segments of it that take about `budget` seconds on two cores. Other options are the flags of
    `streamgroup advise`. UsageError for wrong options, DataError for a trace that is not sound or empty.
    """
    from streamgroup.api.make_options import known_only, made_options
    from streamgroup.api.option_texts import listed
    from streamgroup.study.advise.advise import AdviceRequest, advise
    from streamgroup.study.advise.recommendation import Targets
    from streamgroup.study.sweep.cells_in_threads import default_jobs

    known_only("advise", options, AdviseKeywords.__annotations__)
    question = AdviceRequest(
        Targets(max_p99, max_replication), tuple(listed(grouping)), budget, jobs or default_jobs(), workers is None
    )
    return advise(trace, made_options("kg", 1 if workers is None else workers, options), question, progress)


def explain(
    trace: str | Path,
    grouping: str | Path | None = None,
    workers: int | None = None,
    *,
    top_workers: int = 3,
    progress: Progress | None = None,
    **options: Unpack[ExplainKeywords],
) -> "Explanation":
    """Explain what the most loaded workers get: `print(explain("t.trace", "flink_keyby", 48))`, or of a run directory.

    A run has its own grouping, workers and options. `top_workers` of the whole trace and of its worst window are taken
    apart. Other options are the flags of `streamgroup explain`. UsageError for wrong options, DataError for a trace
    that is not sound, and for a run whose trace is gone.
    """
    from streamgroup.api.make_options import known_only, made_options
    from streamgroup.base.errors import UsageError
    from streamgroup.base.progress import Silent
    from streamgroup.study.explain.explain_loads import explain, explain_run, is_run

    known_only("explain", options, ExplainKeywords.__annotations__)
    progress = progress or Silent()
    if is_run(trace):
        if grouping is not None or workers is not None or options:
            raise UsageError("a run has its own grouping, workers and options", "explain its trace to change them")
        progress.start(None, "replay")
        return explain_run(Path(trace), workers=top_workers, progress=progress.advance)
    if grouping is None or workers is None:
        raise UsageError("explain needs a grouping and a number of workers", "or the directory of a run")
    chosen = made_options(grouping, workers, options)
    progress.start(None, "replay")
    return explain(trace, chosen, workers=top_workers, progress=progress.advance)


def bounds(
    stream: "str | Path | StoragePath",
    workers: int | None = None,
    *,
    grouping: str | Path | None = None,
    run: str | Path | None = None,
    sources: int | None = None,
) -> "Bounds":
    """Evaluate what theory says of a stream from its key counts alone: `bounds("t.trace", 48)["pkg_floor"].value`.

    `stream` is a trace, or a law such as `"zipf:z=1,keys=10000,tuples=10000000"`. With `grouping` only what concerns
    it, with its parameters. A `run` of the stream says what was measured, and has its own grouping, workers and
    sources. UsageError for wrong options and a run of another stream, DataError for a trace that is empty or not sound.
    """
    from streamgroup.api.option_texts import grouping_text
    from streamgroup.study.bounds.evaluate_statements import bounds

    return bounds(
        stream, workers, grouping=None if grouping is None else grouping_text(grouping),
        run=None if run is None else Path(run), sources=sources,
    )  # fmt: skip


def reproduce(
    claims: str | Sequence[str] = (),
    *,
    output: str | Path,
    scale: Literal["quick", "paper"] = "quick",
    jobs: int | None = None,
    progress: Watcher | None = None,
) -> "Reproduction":
    """Look at claims of the papers: `reproduce("001-13", output="claims").findings[0].verdict`.

    `claims` are ids, papers (`001` or `choices`), or `all`. Runs are kept in `output`, and resumed; `claims.md` there
    is a page of what was found, with figures, `claims.json` the same for programs. UsageError for unknown claims.
    """
    import json

    from streamgroup.base.progress import Silent
    from streamgroup.base.storage.atomic_files import write_files
    from streamgroup.report.claims.figures import claims_figures
    from streamgroup.report.claims.page import FIGURES, claims_page
    from streamgroup.study.claims.reproduce import reproduce

    place = Path(output)
    names = [claims] if isinstance(claims, str) else claims
    made = reproduce(names, scale, place, jobs=jobs, progress=progress or Silent())
    figures = claims_figures(made)
    (place / FIGURES).mkdir(parents=True, exist_ok=True)
    rows = json.dumps([finding.to_json() for finding in made.findings], indent=1, ensure_ascii=False)
    files = {place / "claims.md": claims_page(made).encode(), place / "claims.json": f"{rows}\n".encode()}
    write_files({**files, **{place / name: content for name, content in figures.items()}}, overwrite=True)
    return made
