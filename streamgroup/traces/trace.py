"""Opens traces: checks what the format requires, and computes what a trace made by hand leaves out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.storage.storage_path import StoragePath, locate
from streamgroup.traces import layout
from streamgroup.traces.checks.scan_tuples import Scan, block_digests, scan
from streamgroup.traces.fingerprint import fingerprint
from streamgroup.traces.hash_and_show_keys import key_text
from streamgroup.traces.manifest import Manifest, read_manifest
from streamgroup.traces.read_batches import DECODERS, Batch, read_batches
from streamgroup.traces.read_dictionary import (
    Dictionary,
    KeyTable,
    hashes,
    in_id_order,
    load_table,
    lookup,
    packed,
    repeated_keys,
)
from streamgroup.traces.read_parts import (
    TUPLE_COLUMNS,
    Part,
    columns_of,
    key_faults,
    list_parts,
    open_parts,
    tuple_faults,
)

__all__ = ["Batch", "Dictionary", "Trace", "open_trace"]


@dataclass(frozen=True)
class Trace:
    """An open trace. Timestamps are us since 1970 (UTC), None without a tuple; p1 is the top key's share.

    `manifest` is the content of `trace.json`; the attributes are known also where the manifest lacks them.
    """

    path: StoragePath
    name: str
    manifest: Manifest
    tuples: int
    keys: int
    first_timestamp: int | None
    last_timestamp: int | None
    has_cost: bool
    total_cost_ns: int | None
    p1: float | None
    columns: tuple[str, ...]
    _tuple_parts: Sequence[Part] = field(repr=False)
    _key_parts: Sequence[Part] = field(repr=False)
    _cache: dict[str, object] = field(default_factory=dict, repr=False, compare=False)

    def batches(
        self, columns: Sequence[str] = ("timestamp", "key_id"), start: int = 0, decoders: int = DECODERS
    ) -> Iterator[Batch]:
        """Read tuples from place `start` on, in batches of at most 2^20, decoded ahead by `decoders` threads (or none).

        `columns` are among timestamp, key_id, cost, value, weight, parent; the others, and those the trace does not
        have, are None. All arrays are C-contiguous and read-only. DataError when a file is damaged.
        """
        unknown = [name for name in columns if name not in TUPLE_COLUMNS]
        wanted = [name for name in TUPLE_COLUMNS if name in columns and name in self.columns]
        if unknown or not wanted:
            raise ValueError(f"no columns {', '.join(unknown or columns)}")
        return read_batches(self._tuple_parts, wanted, start, decoders)

    def _table(self) -> KeyTable:
        table = self._cache.get("table")
        if not isinstance(table, KeyTable):
            table = self._cache["table"] = load_table(self._key_parts)
        return table

    def dictionary(self) -> Dictionary:
        """Return counts and hashes by key id, read-only; hashes are computed where the trace has none."""
        known = self._cache.get("dictionary")
        if isinstance(known, Dictionary):
            return known
        table = self._table()
        lo, hi = table.hash_lo, table.hash_hi
        if lo is None or hi is None:
            lo, hi = hashes(self._key_parts, self.keys)
            lo.flags.writeable = hi.flags.writeable = False
        made = self._cache["dictionary"] = Dictionary(table.count, lo, hi)
        return made

    def key_bytes(self, ids: Sequence[int]) -> list[bytes | None]:
        """Return the bytes of keys by id; None is the null key."""
        return lookup(self._key_parts, ids)

    def key_texts(self, ids: Sequence[int]) -> list[str | None]:
        """Return keys as text for people, with replacement characters where they are not UTF-8."""
        return [key_text(key) for key in self.key_bytes(ids)]

    def all_keys(self) -> Iterator[bytes | None]:
        """Return the bytes of all keys in id order; None is the null key."""
        return in_id_order(self._key_parts, self._table())

    def packed_keys(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
        """Return the bytes of all keys by id, joined: uint8[...], int64[K + 1] where each starts, null key id or -1."""
        return packed(self._key_parts, self._table())

    def fingerprint(self) -> str:
        """Name the trace by its content: what the manifest says, else computed (one pass)."""
        known = self.manifest.fingerprint or self._cache.get("fingerprint")
        if isinstance(known, str):
            return known
        made = self._cache["fingerprint"] = fingerprint(block_digests(self._tuple_parts), self.all_keys())
        return made


def open_trace(path: str | Path | StoragePath) -> Trace:
    """Open a trace by the path or the URL of its directory.

    A trace with a full manifest and a fingerprint is believed if the footers of its files agree; any other is
    read once and checked: non-decreasing timestamps, ids 0..K-1, true counts, costs that are service times.
    UsageError when there is no such directory, DataError (with the file and the row) when it is not sound.
    """
    root = locate(path)
    if not root.is_dir():
        what = "is not a directory" if root.exists() else "does not exist"
        raise UsageError(f"trace {root} {what}", "name a trace directory, as ingest and synth make them")
    manifest = read_manifest(root)
    tuple_parts = _open(root, layout.TUPLES)
    key_parts = _open(root, layout.KEYS)
    for faults in [*map(tuple_faults, tuple_parts), *map(key_faults, key_parts)]:
        if faults:
            raise DataError(f"{root}: {faults[0]}", f"streamgroup validate {root} lists all faults")
    columns = columns_of(tuple_parts)
    keys = sum(part.rows for part in key_parts)
    rows = sum(part.rows for part in tuple_parts)
    cache: dict[str, object] = {}
    if _is_ours(manifest):
        _agree(root, manifest, {"tuples": rows, "keys": keys})
        first, last, p1 = manifest.first_timestamp, manifest.last_timestamp, manifest.p1
        cost = manifest.total_cost_ns
        if (cost is not None) != ("cost" in columns):
            raise _disagreement(root, "total_cost_ns", cost, "cost" if "cost" in columns else "no column cost")
    else:
        table, found = _measure(root, tuple_parts, key_parts, keys)
        first, last, cost = found.first_timestamp, found.last_timestamp, found.total_cost_ns
        p1 = int(table.count.max()) / rows if rows else None
        _agree(
            root,
            manifest,
            {
                "tuples": rows,
                "keys": keys,
                "first_timestamp": first,
                "last_timestamp": last,
                "total_cost_ns": cost,
            },
        )
        cache["table"] = table
    name = manifest.name or str(key_text(root.resolved().name.encode("utf-8", "surrogateescape"))).removesuffix(
        ".trace"
    )
    return Trace(
        root,
        name,
        manifest,
        rows,
        keys,
        first,
        last,
        "cost" in columns,
        cost,
        p1,
        columns,
        tuple_parts,
        key_parts,
        cache,
    )


def _open(root: StoragePath, folder: str) -> list[Part]:
    places = list_parts(root, folder)
    if not places:
        raise DataError(f"{root}: no {folder}/*.parquet", "a trace holds its tuples and its keys as Parquet files")
    try:
        return open_parts(places)
    except DataError as error:
        raise DataError(f"{root}: {error.message}", error.hint) from None


def _is_ours(manifest: Manifest) -> bool:
    """Report whether a manifest has all fields of our writer, so that opening need not read the tuples."""
    needed: list[object] = [manifest.fingerprint, manifest.program_version, manifest.tuples, manifest.keys]
    if manifest.tuples:
        needed += [manifest.first_timestamp, manifest.last_timestamp, manifest.p1]
    return all(value is not None for value in needed)


def _agree(root: StoragePath, manifest: Manifest, found: dict[str, int | None]) -> None:
    for name, value in found.items():
        stated = getattr(manifest, name)
        if stated is not None and stated != value:
            raise _disagreement(root, name, stated, value)


def _disagreement(root: StoragePath, name: str, stated: object, found: object) -> DataError:
    return DataError(
        f"{root}: trace.json says {name} {stated}, the files hold {found}",
        f"streamgroup validate {root} lists all faults",
    )


def _measure(
    root: StoragePath, tuple_parts: Sequence[Part], key_parts: Sequence[Part], keys: int
) -> tuple[KeyTable, Scan]:
    hint = f"streamgroup validate {root} lists all faults"
    try:
        table = load_table(key_parts)
        twice = repeated_keys(key_parts)
        found = scan(tuple_parts, keys)
    except DataError as error:
        raise DataError(f"{root}: {error.message}", error.hint or hint) from None
    if twice:
        raise DataError(f"{root}: keys: {key_text(twice[0])!r} stands there twice", hint)
    for message in found.faults.values():
        raise DataError(f"{root}: {message}", hint)
    wrong = np.flatnonzero(found.count != table.count)
    if len(wrong):
        key = int(wrong[0])
        raise DataError(f"{root}: keys: key_id {key} has count {table.count[key]}, but {found.count[key]} tuples", hint)
    return table, found
