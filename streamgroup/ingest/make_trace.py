"""Runs an ingest: read, count keys, assign ids, sort, write; the same for every source."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from streamgroup.base.errors import DataError, RunError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.storage.output_on_disk_or_object_store import staged_output
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.base.version import VERSION
from streamgroup.ingest.explain_rejected_rows import no_tuples_left
from streamgroup.ingest.options import CommonOptions, IngestOptions, parse_max_rejects
from streamgroup.ingest.pipeline.check_and_filter_rows import NULL_KEY
from streamgroup.ingest.pipeline.make_parts import Rejects, Wanted, make_parts
from streamgroup.ingest.pipeline.read_splits import SplitStats, read_split_stats
from streamgroup.ingest.pipeline.tuple_segments import SPLIT_BITS, Segment, read_segment
from streamgroup.ingest.pipeline.write_parts import RejectsOf
from streamgroup.ingest.plausibility import TimedFile, check_units, span_note, warnings_of
from streamgroup.ingest.runners.local_runner import LocalRunner
from streamgroup.ingest.runners.protocol import Runner
from streamgroup.ingest.runners.spark_runner import SparkRunner
from streamgroup.ingest.sources.file_source import FileSource
from streamgroup.ingest.sources.protocol import Source
from streamgroup.ingest.up_to_date import up_to_date
from streamgroup.spark.executor_package import ensure_package
from streamgroup.spark.session import Session, start_session, terminable
from streamgroup.traces import layout
from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.manifest import Manifest, measured, write_manifest
from streamgroup.traces.read_dictionary import iterate_keys
from streamgroup.traces.read_parts import list_parts, open_part

__all__ = ["IngestResult", "ingest", "make_trace", "staged_trace"]

_BEYOND_HEAD = "beyond --head"


class IngestResult(NamedTuple):
    """A finished ingest: the place of the trace, its manifest, `notes` on what was inferred, and `warnings`."""

    trace: Path | StoragePath
    manifest: Manifest
    notes: list[str]
    warnings: list[str]


class _SplitResults(NamedTuple):
    """The statistics of all splits, and how many lines of the input come before each."""

    stats: list[SplitStats]
    before: list[int]

    def total(self, name: str) -> Counter[str]:
        """Add up `rejected` or `filtered` by reason."""
        return sum((Counter(getattr(stats, name)) for stats in self.stats), Counter[str]())

    @property
    def rows(self) -> int:
        """Return the number of rows read."""
        return sum(stats.rows for stats in self.stats)

    @property
    def examples(self) -> dict[str, str]:
        """Return the text of a rejected row for each reason."""
        return {reason: text for stats in self.stats for reason, (_, text) in stats.examples.items()}


def ingest(
    options: IngestOptions,
    progress: Progress | None = None,
    session: Session | Callable[[], Session] | None = None,
) -> IngestResult:
    """Make a trace of raw inputs.

    `session` is used if given (its master and settings count then), or what it returns when one is needed; else one is
    opened and closed. With `if_missing` nothing is made if the trace is up to date. UsageError
    for wrong options, columns or inputs, EnvironmentFault without Java, DataError when the data are damaged,
    too many rows are rejected, or none is left. Nothing is left behind but the whole trace, or nothing at
    all.
    """
    progress = progress or Silent()
    source: FileSource | None = None
    if options.if_missing:
        source = FileSource(options)
        manifest = up_to_date(options, source)
        if manifest is not None:
            return IngestResult(_place(options), manifest, ["up to date"], [])
    with (
        terminable(),
        staged_trace(options) as out,
        ExitStack() as opened,
    ):
        # Not before: an output that exists is the first error.
        source = source or FileSource(options)
        if options.engine == "local":
            return make_trace(source, options, out, LocalRunner(progress))
        if session is None:
            session = opened.enter_context(start_session(options, progress))
        elif callable(session):
            session = session()
        ensure_package(session, progress)
        return make_trace(source, options, out, SparkRunner(session, progress))


def _place(options: CommonOptions) -> Path | StoragePath:
    trace = locate(options.output)
    return Path(trace.text) if trace.is_local else trace


def staged_trace(options: CommonOptions) -> AbstractContextManager[StoragePath]:
    """Return the folder of the trace as a context, see `staged_output`."""
    return staged_output(locate(options.output), overwrite=options.overwrite, marker=layout.MANIFEST, keep_old=True)


def make_trace(source: Source, options: CommonOptions, out: StoragePath, runner: Runner) -> IngestResult:
    """Make a trace in an empty folder, and close the runner."""
    try:
        return _make(source, options, out, runner)
    finally:
        runner.close()


def _make(source: Source, options: CommonOptions, out: StoragePath, runner: Runner) -> IngestResult:
    frame = source.read(runner)
    rows = runner.run(lambda: frame.stats("split", "segment", "digest"), source.tasks, "reading")
    inputs = source.inputs(rows)
    read = _join_splits(source, sorted(read_split_stats(row) for row in rows if row.kind == "split"))
    _check_rejected(options, source, read)
    segments = sorted(read_segment(row) for row in rows if row.kind == "segment")
    if options.time_format == "auto":
        check_units(_time_ranges(source, read, segments))
    filtered = read.total("filtered")
    if not segments:
        raise _nothing_left(source, read)
    wanted = Wanted(ordered=source.ordered, timed=source.timed, first=options.head)
    made = make_parts(runner, frame, segments, out, _rejects(source, read), wanted)
    filtered[_BEYOND_HEAD] += sum(segment.rows for segment in segments) - made.rows
    trace = locate(options.output)
    key_files = [open_part(path) for path in list_parts(out, layout.KEYS)]
    null_only = made.keys == 1 and next(iter(iterate_keys(key_files))) is None
    manifest = Manifest(
        format_version=layout.FORMAT_VERSION,
        name=trace.name.removesuffix(".trace"),
        program_version=VERSION,
        inputs=inputs,
        in_order=made.in_order,
        out_of_order=made.late,
        **source.describe(),
        **_row_counts(read, +filtered),
        **measured(made.stats, made.keys, made.top, fingerprint(made.stats.block_digests, iterate_keys(key_files))),
    )
    write_manifest(out, manifest)
    return IngestResult(
        _place(options),
        manifest,
        [*_notes(read), span_note(manifest)],
        _warnings(manifest, read, null_only=null_only),
    )


def _join_splits(source: Source, stats: list[SplitStats]) -> _SplitResults:
    before, line, current = [], 0, -1
    for split in stats:
        number, _ = source.origin(split.split)
        line = line if number == current else 0
        current = number
        before.append(line)
        line += split.lines
    return _SplitResults(stats, before)


def _time_ranges(source: Source, read: _SplitResults, segments: list[Segment]) -> list[TimedFile]:
    """Return the range of the kept times of each input that has some."""
    forms = {stats.split: stats.time_format for stats in read.stats}
    found: dict[int, TimedFile] = {}
    for segment in segments:
        split = segment.number >> SPLIT_BITS
        number, name = source.origin(split)
        known = found.get(number, TimedFile(name, forms[split], segment.lowest, segment.highest))
        low, high = min(known.first, segment.lowest), max(known.last, segment.highest)
        found[number] = known._replace(first=low, last=high)
    return list(found.values())


def _nothing_left(source: Source, read: _SplitResults) -> DataError:
    filtered, rejected = read.total("filtered"), read.total("rejected")
    error = no_tuples_left(read.rows, filtered, rejected)
    if not filtered:
        error.hint = source.advise(rejected, read.examples, error.hint or "")
    elif filtered.most_common(1)[0][0] == NULL_KEY:
        error.hint = "is --key the right column? --null-keys keep makes null a key"
    return error


def _rejects(source: Source, read: _SplitResults) -> Rejects:
    of_split: dict[int, RejectsOf] = {}
    first = 0
    for stats, before in zip(read.stats, read.before, strict=True):
        if stats.rejected:
            shown = source.origin(stats.split)[1].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            of_split[stats.split] = RejectsOf(shown, before, first)
            first += sum(stats.rejected.values())
    return Rejects(of_split, first)


def _check_rejected(options: CommonOptions, source: Source, read: _SplitResults) -> None:
    """Raise a DataError when too many rows were rejected; it names the most frequent reasons."""
    rejected = read.total("rejected")
    lost = rejected.total()

    def example(reason: str) -> str:
        for stats, before in zip(read.stats, read.before, strict=True):
            if reason in stats.examples:
                line, text = stats.examples[reason]
                return f"{source.origin(stats.split)[1]}:{before + line}: {text[:80]!r}"
        return ""

    if options.null_keys == "fail" and rejected[NULL_KEY]:
        raise DataError(
            f"{rejected[NULL_KEY]} null keys, the first at {example(NULL_KEY)}",
            "use --null-keys drop or keep",
        )
    number, share = parse_max_rejects(options.max_rejects)
    if lost <= (number if number is not None else Fraction(read.rows) * share):
        return
    common = "; ".join(f"{count} x {reason} ({example(reason)})" for reason, count in rejected.most_common(3))
    raise DataError(
        f"{lost} of {read.rows} rows cannot be read, more than --max-rejects {options.max_rejects}: {common}",
        source.advise(rejected, read.examples, "check the options with --dry-run, or allow more with --max-rejects"),
    )


def _row_counts(read: _SplitResults, filtered: Counter[str]) -> dict[str, Any]:
    rejected = read.total("rejected")
    rows, kept = read.rows, sum(stats.kept for stats in read.stats) - filtered[_BEYOND_HEAD]
    if rows != kept + rejected.total() + filtered.total():
        what = f"{rows} rows read are not {kept} kept, {rejected.total()} rejected and {filtered.total()} filtered"
        raise RunError(what, "this is a fault of the program, or of the reader")
    return {
        "rows_read": rows,
        "rows_kept": kept,
        "rows_rejected": rejected.total(),
        "rejected": dict(rejected),
        "rows_filtered": filtered.total(),
        "filtered": dict(filtered),
    }


def _notes(read: _SplitResults) -> list[str]:
    notes = list(dict.fromkeys(note for stats in read.stats for note in stats.inferred))
    return [f"inferred: {', '.join(notes)}"] if notes else []


def _warnings(manifest: Manifest, read: _SplitResults, *, null_only: bool) -> list[str]:
    warnings = []
    if manifest.rows_rejected:
        reasons = ", ".join(f"{count} {reason}" for reason, count in (manifest.rejected or {}).items())
        warnings.append(f"{manifest.rows_rejected} rows rejected (kept in rejects/): {reasons}")
    dropped = (manifest.filtered or {}).get(NULL_KEY)
    if dropped:
        warnings.append(f"{dropped} rows with a null key dropped (--null-keys keep makes them a key)")
    if manifest.out_of_order:
        warnings.append(f"the input was not in time order ({manifest.out_of_order} rows late); the trace is")
    return [*warnings, *warnings_of(manifest, [stats.time_format for stats in read.stats], null_only=null_only)]
