"""Checks a trace against every promise of the format, and finds all faults, not only the first."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces import layout
from streamgroup.traces.checks.scan_tuples import Scan, block_digests, scan
from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.hash_and_show_keys import key_text, not_utf8
from streamgroup.traces.manifest import Manifest, read_manifest
from streamgroup.traces.read_dictionary import KeyTable, hashes, in_id_order, load_table, repeated_keys
from streamgroup.traces.read_parts import (
    Part,
    columns_of,
    key_faults,
    list_parts,
    open_part,
    read_part,
    tuple_faults,
)

__all__ = ["Finding", "validate"]

_T = TypeVar("_T")


class Finding(NamedTuple):
    """One deviation from the format.

    "error": a promise that every trace makes is broken. "note": only what our writer promises on top (borders
    of parts and row groups, names, the order of ids) is not so; the trace can be replayed all the same.
    """

    level: Literal["error", "note"]
    check: str
    message: str


def validate(trace: str | Path | StoragePath) -> list[Finding]:
    """Check a trace directory against every promise of the trace format; an empty list means that all hold.

    Reads everything; memory is O(keys). UsageError when there is no such directory.
    """
    root = locate(trace)
    if not root.is_dir():
        raise UsageError(f"trace {root} is not a directory", "name a trace directory")
    found: list[Finding] = []
    manifest = _try(found, "manifest", lambda: read_manifest(root))
    tuples = _open(found, root, layout.TUPLES, tuple_faults)
    keys = _open(found, root, layout.KEYS, key_faults)
    rejects = _open(found, root, layout.REJECTS, _reject_faults)
    if keys is not None:
        found += _layout(keys, layout.KEY_PART_ROWS, layout.KEY_PART_ROWS)
    if tuples is not None:
        found += _layout(tuples, layout.PART_ROWS, layout.ROW_GROUP_ROWS)
    found += [note for folder in (layout.TUPLES, layout.KEYS, layout.REJECTS) for note in _ignored(root, folder)]
    table = None if keys is None else _try(found, "keys", lambda: load_table(keys))
    if keys is not None and table is not None:
        found += _keys(keys, table)
    if tuples is not None and keys is not None:
        number = sum(part.rows for part in keys)
        content = _try(found, "tuples", lambda: scan(tuples, number))
        if content is not None:
            found += [Finding("error", check, message) for check, message in content.faults.items()]
            if table is not None:
                found += _counts(table, content)
            if manifest is not None:
                found += _content(manifest, content, table, tuples, keys)
    if manifest is not None:
        found += _rows(manifest, None if rejects is None else sum(part.rows for part in rejects))
    return sorted(found, key=lambda finding: finding.level != "error")


def _try(found: list[Finding], check: str, action: Callable[[], _T]) -> _T | None:
    try:
        return action()
    except DataError as error:
        found.append(Finding("error", check, error.message))
        return None


def _open(
    found: list[Finding], root: StoragePath, folder: str, faults: Callable[[Part], list[str]]
) -> list[Part] | None:
    """Open the files of a folder; None, with the reasons found, when their rows cannot be read."""
    paths = list_parts(root, folder)
    if not paths and folder != layout.REJECTS:
        found.append(Finding("error", folder, f"no {folder}/*.parquet"))
        return None
    before = len(found)
    parts = [part for path in paths if (part := _try(found, folder, partial(open_part, path))) is not None]
    found += [Finding("error", folder, message) for part in parts for message in faults(part)]
    if len(found) == before and folder == layout.TUPLES:
        _try(found, folder, lambda: columns_of(parts))
    return parts if len(found) == before else None


def _ignored(root: StoragePath, folder: str) -> Iterator[Finding]:
    whole = root / folder
    for entry in whole.entries(recursive=True):
        inner = entry.place.within(whole)
        if "/" in inner and inner.endswith(".parquet"):
            yield Finding("note", "names", f"{folder}/{inner} is ignored: no sub-directory is part of a trace")


def _reject_faults(part: Part) -> list[str]:
    missing = [name for name in layout.REJECTS_SCHEMA.names if name not in part.schema.names]
    return [f"{part.label}: no column {name}" for name in missing]


def _layout(parts: Sequence[Part], part_rows: int, group_rows: int) -> Iterator[Finding]:
    for place, part in enumerate(parts):
        if part.path.name != layout.part_name(place):
            yield Finding("note", "names", f"{part.label} is not named {layout.part_name(place)}")
        last = place == len(parts) - 1
        if part.rows != part_rows and not (last and part.rows <= part_rows):
            yield Finding("note", "parts", f"{part.label} has {part.rows} rows, not {part_rows}")
        groups = [part.metadata.row_group(i) for i in range(part.metadata.num_row_groups)]
        sizes = [group.num_rows for group in groups]
        if any(size != group_rows for size in sizes[:-1]) or any(size > group_rows for size in sizes[-1:]):
            yield Finding("note", "row groups", f"{part.label} has row groups that are not of {group_rows} rows")
        codecs = {group.column(i).compression for group in groups for i in range(group.num_columns)}
        if codecs - {"ZSTD"}:
            yield Finding("note", "compression", f"{part.label} is compressed by {', '.join(sorted(codecs))}")


def _keys(parts: Sequence[Part], table: KeyTable) -> Iterator[Finding]:
    for key in repeated_keys(parts):
        yield Finding("error", "keys", f"key {key_text(key)!r} stands in the dictionary twice")
    for message in _texts(parts):
        yield Finding("error", "key_bytes", message)
    if table.hash_lo is not None and table.hash_hi is not None:
        lo, hi = hashes(parts, len(table.count))
        wrong = np.flatnonzero((lo != table.hash_lo) | (hi != table.hash_hi))
        if len(wrong):
            yield Finding("error", "hashes", f"key_id {wrong[0]}: not the hash of its key ({len(wrong)} such keys)")
    if not table.sorted_rows:
        yield Finding("note", "id order", "the rows of keys/ are not in the order of the ids")
    misplaced = _misplaced(table, in_id_order(parts, table))
    if misplaced is not None:
        yield Finding("note", "id order", f"key_id {misplaced} does not go by count and then by key bytes ascending")


def _misplaced(table: KeyTable, keys: Iterable[bytes | None]) -> int | None:
    """Return the first id that is out of order: by count, descending, then by key bytes, the null key first."""
    before: tuple[int, bool, bytes] | None = None
    for key_id, (count, key) in enumerate(zip(table.count.tolist(), keys, strict=True)):
        place = (-count, key is not None, key or b"")
        if before is not None and place < before:
            return key_id
        before = place
    return None


def _texts(parts: Sequence[Part]) -> Iterator[str]:
    """Check that `key_bytes` holds the bytes of the keys that are not UTF-8, and of no others."""
    for part in parts:
        if "key_bytes" not in part.schema.names:
            continue
        table = read_part(part, None, ["key_id", "key", "key_bytes"])
        for row in table.filter(pc.is_valid(table.column("key_bytes"))).to_pylist():
            text, kept = row["key"], row["key_bytes"]
            if not not_utf8(pa.array([kept], pa.large_binary())):
                yield f"{part.label}: key_id {row['key_id']} has key_bytes, but is valid UTF-8"
            elif text != key_text(kept):
                yield f"{part.label}: key_id {row['key_id']}: key does not show its key_bytes"


def _counts(table: KeyTable, content: Scan) -> Iterator[Finding]:
    unused = np.flatnonzero((table.count == 0) & (content.count == 0))
    if len(unused):
        more = f" ({len(unused)} such keys)" if len(unused) > 1 else ""
        yield Finding("error", "counts", f"key_id {unused[0]} has count 0: a key without tuples is no key{more}")
    wrong = np.flatnonzero(table.count != content.count)
    if len(wrong):
        key = int(wrong[0])
        yield Finding(
            "error",
            "counts",
            f"key_id {key} has count {table.count[key]}, but {content.count[key]} tuples ({len(wrong)} such keys)",
        )


def _content(
    manifest: Manifest, content: Scan, table: KeyTable | None, tuples: Sequence[Part], keys: Sequence[Part]
) -> Iterator[Finding]:
    """Compare the manifest with the content."""
    cost = content.total_cost_ns
    derived: dict[str, float | str | None] = {
        "tuples": content.tuples,
        "keys": len(content.count),
        "first_timestamp": content.first_timestamp,
        "last_timestamp": content.last_timestamp,
        "total_cost_ns": cost,
        "p1": int(content.count.max()) / content.tuples if content.tuples else None,
        "mean_cost_us": cost / (1000 * content.tuples) if cost is not None and content.tuples else None,
    }
    if "cost" in content.faults:
        del derived["total_cost_ns"], derived["mean_cost_us"]
    if table is not None and manifest.fingerprint is not None:
        derived["fingerprint"] = fingerprint(block_digests(tuples), in_id_order(keys, table))
    for name, value in derived.items():
        stated = getattr(manifest, name)
        if stated is None or stated == value:
            continue
        if isinstance(stated, float) and isinstance(value, float) and math.isclose(stated, value, rel_tol=1e-12):
            continue
        yield Finding("error", name, f"trace.json says {name} {stated}, the files hold {value}")


def _rows(manifest: Manifest, rejects: int | None) -> Iterator[Finding]:
    """Check the arithmetic of rows: read = kept + rejected + filtered, the reasons, and the rejects kept."""
    read, kept = manifest.rows_read, manifest.rows_kept
    rejected, filtered = manifest.rows_rejected, manifest.rows_filtered
    if None not in (read, kept, rejected, filtered):
        total = (kept or 0) + (rejected or 0) + (filtered or 0)
        if read != total:
            yield Finding("error", "rows", f"{read} rows read, but kept + rejected + filtered is {total}")
    for name, number, reasons in (
        ("rejected", rejected, manifest.rejected),
        ("filtered", filtered, manifest.filtered),
    ):
        if number is not None and reasons is not None and sum(reasons.values()) != number:
            yield Finding("error", "rows", f"{number} rows {name}, but {sum(reasons.values())} by reason")
    if rejects is not None and rejects != (rejected or 0):
        yield Finding("error", "rejects", f"{rejected or 0} rows rejected, but rejects/ holds {rejects}")
    late = manifest.out_of_order
    if None not in (manifest.in_order, late) and manifest.in_order != (late == 0):
        yield Finding(
            "error",
            "in_order",
            f"in_order {manifest.in_order}, but {late} rows came late",
        )
