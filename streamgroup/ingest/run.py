"""The ingest: read -> contract -> order -> encode -> write, once, for every reader."""

import shutil
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import streamgroup
from streamgroup.base.errors import DataError, RunError
from streamgroup.base.progress import Progress, Silent
from streamgroup.base.staging import staged_directory
from streamgroup.ingest import assemble, dictionary, inputs, order
from streamgroup.ingest.assemble import RejectFile
from streamgroup.ingest.contract import NULL_KEY, Contract
from streamgroup.ingest.inputs import InputFile
from streamgroup.ingest.options import IngestOptions, parse_max_rejects
from streamgroup.ingest.read import SplitStats, digest_file, located, make_reader, read_split
from streamgroup.ingest.readers.protocol import Reader, Split
from streamgroup.ingest.segments import Scratch
from streamgroup.ingest.tasks import groups, run_all
from streamgroup.spark.java import find_java
from streamgroup.spark.session import Session, open_session, terminable
from streamgroup.traces import schema
from streamgroup.traces.dictionary import iterate_keys
from streamgroup.traces.manifest import Input, Manifest, measured, write_manifest
from streamgroup.traces.parts import list_parts, open_part
from streamgroup.traces.writer import fingerprint

__all__ = ["IngestResult", "ingest"]

_BEYOND_HEAD = "beyond --head"
# Bytes below which inputs share a task; little, as they may be compressed or words to be split.
TASK_BYTES = 1 << 20
# Bytes of all inputs up to which they are searched for a first record before Spark starts.
_SMALL = 1 << 20
# Options that say how to run, not what to read: the same trace comes of any of them.
_HOW = {
    "reader", "inputs", "output", "master", "spark_conf", "driver_memory", "overwrite", "dry_run", "checksum",
    "max_rejects",
}  # fmt: skip


class IngestResult(NamedTuple):
    """A finished ingest: where the trace is, its manifest, and what a person should know about it: `notes` of what was
    inferred, `warnings` of what was not as it should be.
    """

    trace: Path
    manifest: Manifest
    notes: list[str]
    warnings: list[str]


class _Plan(NamedTuple):
    options: IngestOptions
    files: list[InputFile]
    splits: list[Split]


class _Lines(NamedTuple):
    """What the read tasks returned, with the lines of the input that come before each split."""

    stats: list[SplitStats]
    digests: list[str | None]
    before: list[int]


def ingest(options: IngestOptions, progress: Progress | None = None, session: Session | None = None) -> IngestResult:
    """Make a trace of raw inputs on Spark.

    `session` is used if given (its master and settings count then), else one is opened and closed. UsageError
    for wrong options, columns or inputs, EnvironmentFault without Java, DataError when the data are damaged,
    too many rows are rejected, or none is left. Nothing is left behind but the whole trace, or nothing at
    all.
    """
    progress = progress or Silent()
    with (
        terminable(),
        staged_directory(options.output, overwrite=options.overwrite, marker=schema.MANIFEST) as out,
    ):
        plan = _plan(options)
        if session is not None:
            return _run(plan, out, progress, session)
        find_java()
        progress.start(1, "starting Spark")
        with open_session(options) as opened:
            return _run(plan, out, progress, opened)


def _plan(options: IngestOptions) -> _Plan:
    """Check all that can be checked before Spark starts."""
    reader = make_reader(options)
    Contract(options)
    files = inputs.resolve(options.inputs)
    splits = inputs.plan_splits(reader, files)
    reader.layout(splits[0].path)
    if options.limit is not None:
        splits = inputs.limited(reader, splits, options.limit)
        if not splits:
            raise DataError("--limit 0 leaves no rows", "leave it out")
    _check_rows(reader, splits)
    return _Plan(options, files, splits)


def _read_job(options: IngestOptions, scratch: Scratch, job: Split | str) -> SplitStats | str:
    path = job if isinstance(job, str) else job.path
    try:
        return digest_file(path) if isinstance(job, str) else read_split(options, scratch, job)
    except FileNotFoundError:
        if Path(path).exists():
            raise
        hint = "keep inputs until the end; on a cluster, where all machines find them"
        raise DataError(f"{path} vanished while it was read", hint) from None


def _run(plan: _Plan, out: Path, progress: Progress, session: Session) -> IngestResult:
    options, context = plan.options, session.context
    scratch = Scratch(str(out / "scratch"))
    lines = _read(plan, scratch, progress, session)
    inputs.check_unchanged(plan.files)
    rejects = _reject_files(plan, scratch, lines)
    _judge(options, lines, rejects)
    segments = [segment for stats in lines.stats for segment in stats.segments]
    filtered = sum((Counter(stats.filtered) for stats in lines.stats), Counter[str]())
    if not segments:
        rejected = sum((Counter(stats.rejected) for stats in lines.stats), Counter[str]())
        raise _nothing_left(sum(stats.rows for stats in lines.stats), filtered, rejected)
    ordered = order.in_order(segments)
    late = 0
    if not ordered:
        late = session.run(lambda: order.count_late(context, scratch, segments), progress, 1, "checking the order")
    if options.head is not None:
        whole = segments
        segments = session.run(
            lambda: order.cut_head(context, scratch, whole, options.head or 0),
            progress,
            1,
            "cutting to the head",
        )
        filtered[_BEYOND_HEAD] += sum(s.rows for s in whole) - sum(s.rows for s in segments)
        if not segments:
            raise DataError("--head 0 leaves no tuples", "leave it out")
    tasks = session.parallelism
    keys = session.run(
        lambda: dictionary.count_keys(context, scratch, segments, tasks), progress, tasks, "ranking keys"
    )
    session.run(
        lambda: dictionary.map_segments(context, scratch, segments, keys), progress, len(segments), "giving ids"
    )
    session.run(lambda: assemble.assemble_keys(context, scratch, out / schema.KEYS, keys), progress, 1, "writing keys")
    pieces = order.ordered_pieces(segments)
    if not ordered:
        pieces = session.run(
            lambda: order.sort_pieces(context, scratch, segments, tasks), progress, len(segments), "sorting"
        )
    parts = -(-sum(piece.tuples for piece in pieces) // schema.PART_ROWS)
    written = session.run(
        lambda: assemble.assemble_tuples(context, scratch, out / schema.TUPLES, pieces),
        progress,
        parts,
        "writing tuples",
    )
    if rejects:
        session.run(
            lambda: assemble.assemble_rejects(context, out / schema.REJECTS, rejects),
            progress,
            1,
            "writing rejects",
        )
    names = iterate_keys([open_part(path) for path in list_parts(out, schema.KEYS)])
    name = fingerprint(written.block_digests, names)
    counts = _row_counts(lines, filtered)
    manifest = Manifest(
        format_version=schema.FORMAT_VERSION,
        name=options.output.name.removesuffix(".trace"),
        program_version=streamgroup.__version__,
        reader=options.reader,
        reader_options=options.model_dump(mode="json", exclude=_HOW, exclude_defaults=True),
        inputs=[
            Input(path=file.given, bytes=file.size, sha256=digest)
            for file, digest in zip(plan.files, lines.digests, strict=True)
        ],
        in_order=ordered,
        out_of_order=late,
        **counts,
        **measured(written, keys.keys, keys.top, name),
    )
    shutil.rmtree(scratch.root)
    write_manifest(out, manifest)
    return IngestResult(options.output, manifest, _notes(lines), _warnings(manifest))


def _read(plan: _Plan, scratch: Scratch, progress: Progress, session: Session) -> _Lines:
    context = session.context
    files = [file.path for file in plan.files] if plan.options.checksum else []
    jobs: list[Split | str] = [*files, *plan.splits]
    work = partial(_read_job, located(plan.options), scratch)
    sizes = {file.path: file.size for file in plan.files}
    shares = Counter(split.path for split in plan.splits)
    weights = [sizes[job] if isinstance(job, str) else sizes[job.path] // shares[job.path] for job in jobs]
    together = len(groups(jobs, weights, TASK_BYTES))
    found: list[Any] = session.run(
        lambda: run_all(context, work, jobs, weights, TASK_BYTES), progress, together, "reading"
    )
    stats: list[SplitStats] = found[len(files) :]
    before, line, current = [], 0, -1
    for split, stat in zip(plan.splits, stats, strict=True):
        line = line if split.file == current else 0
        current = split.file
        before.append(line)
        line += stat.lines
    digests: list[str | None] = found[: len(files)] if files else [None] * len(plan.files)
    return _Lines(stats, digests, before)


def _reject_files(plan: _Plan, scratch: Scratch, lines: _Lines) -> list[RejectFile]:
    return [
        RejectFile(
            str(scratch.rejects(split.number)),
            plan.files[split.file].given,
            before,
            sum(stats.rejected.values()),
        )
        for split, stats, before in zip(plan.splits, lines.stats, lines.before, strict=True)
        if stats.rejected
    ]


def _judge(options: IngestOptions, lines: _Lines, files: list[RejectFile]) -> None:
    """Refuse the input when too many rows were rejected; the message tells the commonest reasons."""
    rejected = sum((Counter(stats.rejected) for stats in lines.stats), Counter[str]())
    rows, lost = sum(stats.rows for stats in lines.stats), rejected.total()
    by_split = {stats.split: (stats, before) for stats, before in zip(lines.stats, lines.before, strict=True)}
    names = {int(Path(file.path).stem): file.file for file in files}

    def example(reason: str) -> str:
        for split, name in sorted(names.items()):
            stats, before = by_split[split]
            if reason in stats.examples:
                line, text = stats.examples[reason]
                return f"{name}:{before + line}: {text[:80]!r}"
        return ""

    if options.null_keys == "fail" and rejected[NULL_KEY]:
        raise DataError(
            f"{rejected[NULL_KEY]} null keys, the first at {example(NULL_KEY)}",
            "use --null-keys drop or keep",
        )
    number, share = parse_max_rejects(options.max_rejects)
    if lost <= (number if number is not None else Fraction(rows) * share):
        return
    common = "; ".join(f"{count} x {reason} ({example(reason)})" for reason, count in rejected.most_common(3))
    raise DataError(
        f"{lost} of {rows} rows cannot be read, more than --max-rejects {options.max_rejects}: {common}",
        "check the options with --dry-run, or allow more with --max-rejects",
    )


def _nothing_left(rows: int, filtered: Counter[str], rejected: Counter[str]) -> DataError:
    why = [f"{count} {reason}" for reason, count in filtered.most_common(4)]
    why += [f"{count} rejected ({reason})" for reason, count in rejected.most_common(4)]
    what = "1 row" if rows == 1 else f"{rows} rows"
    message = f"no tuple is left of {what}" + (f": {', '.join(why)}" if why else "")
    return DataError(message, "look at a few rows with --dry-run")


def _check_rows(reader: Reader, splits: list[Split]) -> None:
    """Refuse inputs that hold no record at all, only a header or blank lines; looked at only where that is cheap."""
    if sum(Path(split.path).stat().st_size for split in splits) > _SMALL:
        return
    rows, filtered = 0, Counter[str]()
    for split in splits:
        for parsed in reader.batches(split, reader.layout(split.path)):
            if len(parsed.line) or parsed.rejects:
                return
            rows += parsed.rows
            filtered.update(parsed.filtered)
    raise _nothing_left(rows, filtered, Counter())


def _row_counts(lines: _Lines, filtered: Counter[str]) -> dict[str, Any]:
    rejected = sum((Counter(stats.rejected) for stats in lines.stats), Counter[str]())
    filtered = +filtered
    rows, kept = (sum(getattr(stats, name) for stats in lines.stats) for name in ("rows", "kept"))
    kept -= filtered[_BEYOND_HEAD]
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


def _notes(lines: _Lines) -> list[str]:
    notes = list(dict.fromkeys(note for stats in lines.stats for note in stats.inferred))
    return [f"inferred: {', '.join(notes)}"] if notes else []


def _warnings(manifest: Manifest) -> list[str]:
    told = []
    if manifest.rows_rejected:
        reasons = ", ".join(f"{count} {reason}" for reason, count in (manifest.rejected or {}).items())
        told.append(f"{manifest.rows_rejected} rows rejected (kept in rejects/): {reasons}")
    dropped = (manifest.filtered or {}).get(NULL_KEY)
    if dropped:
        told.append(f"{dropped} rows with a null key dropped (--null-keys keep makes them a key)")
    if manifest.out_of_order:
        told.append(f"the input was not in time order ({manifest.out_of_order} rows late); the trace is")
    return told
