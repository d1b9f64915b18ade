"""A trace as plain lists, and the slow twin of an ingest."""

import csv
import io
import math
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

# What a file begins with that is no plain text in an encoding of bytes: packed, an archive, UTF-16, Parquet.
NOT_LINES = (
    b"\x1f\x8b", b"\x1f\x9d", b"BZh", b"\x28\xb5\x2f\xfd",
    *(bytes([0x50 + kind]) + b"\x2a\x4d\x18" for kind in range(16)),
    b"\xfd7zXZ", b"\x04\x22\x4d\x18", b"PK", b"7z\xbc\xaf", b"Rar!", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"PAR1",
)  # fmt: skip


def tuples_of(trace: Path) -> list[tuple[int, str | None]]:
    keys = pq.read_table(trace / "keys").column("key").to_pylist()
    table = pq.read_table(trace / "tuples")
    return [
        (stamp, keys[key])
        for stamp, key in zip(table.column("timestamp").to_pylist(), table.column("key_id").to_pylist(), strict=True)
    ]


class Twin:
    """The same trace, made slowly: all rows in lists, sorted, counted."""

    def __init__(self, files: list[Path]) -> None:
        rows: list[tuple[int, int, int, str]] = []
        for number, path in enumerate(files):
            for line, row in enumerate(csv.reader(io.StringIO(path.read_text())), 1):
                if line > 1 and row:
                    rows.append((int(row[0]) * 1_000_000, number, line, row[1]))
        latest, self.late = -(2**63), 0
        for row in rows:
            self.late += row[0] < latest
            latest = max(latest, row[0])
        rows.sort(key=lambda row: row[:3])
        self.tuples = [(row[0], row[3]) for row in rows]
        counts = Counter(key for _, key in self.tuples)
        self.keys = sorted(counts, key=lambda key: (-counts[key], key.encode()))


class Row(NamedTuple):
    """One row as a reader would hand it over: texts, but for the repeat; cost a text or, with a list of keys, texts."""

    time: bytes
    key: bytes | list[bytes | None] | None
    cost: bytes | list[bytes | None] | None = None
    value: bytes | None = None
    weight: bytes | None = None
    repeat: int = 1


class Outcome(NamedTuple):
    """What became of rows: (us, key, cost, value, weight, number of the row kept) of tuples, and where rows went."""

    tuples: list[tuple[int, bytes | None, float, float, float, int]]
    rejects: list[tuple[int, str]]
    filtered: Counter[str]
    kept: int


def _number(text: bytes | None) -> float | None:
    if text is None or not re.fullmatch(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return None
    return float(text) if math.isfinite(float(text)) else None


def _fault(row: Row, keys: list[bytes | None], null_keys: str) -> str:
    """Say why a row cannot be used, "" if it can; times are whole seconds."""
    if not re.fullmatch(rb"\d+", row.time):
        return "time cannot be read"
    costs = row.cost if isinstance(row.cost, list) else [row.cost]
    if isinstance(row.cost, list) and len(costs) != len(keys):
        return "not as many costs as keys"
    if any((number := _number(cost)) is None or not 0 <= number < 3.4e38 for cost in costs):
        return "cost is negative or not a number"
    if _number(row.value) is None:
        return "value is not a number"
    if _number(row.weight) is None:
        return "weight is not a number"
    if row.repeat < 0:
        return "count is negative"
    if row.repeat > 1 << 40:
        return "count is too large"
    return "null key" if null_keys == "fail" and None in keys else ""


def contract_of(
    rows: list[Row], *, null_keys: str, null_values: set[bytes], stopwords: set[bytes], since: int
) -> Outcome:
    """The contract, a row at a time; `since` in seconds."""
    tuples, rejects, filtered, kept = [], [], Counter[str](), 0
    for line, row in enumerate(rows, 1):
        keys = row.key if isinstance(row.key, list) else [row.key]
        keys = [None if key in null_values else key for key in keys]
        costs = row.cost if isinstance(row.cost, list) else [row.cost] * len(keys)
        fault = _fault(row, keys, null_keys)
        if fault:
            rejects.append((line, fault))
            continue
        left = [(key, cost) for key, cost in zip(keys, costs, strict=True) if key is not None or null_keys == "keep"]
        said = [(key, cost) for key, cost in left if key not in stopwords]
        reason = "no keys" if not keys else "null key" if not left else "count is 0" if not row.repeat else ""
        reason = reason or ("before --since" if int(row.time) < since else "" if said else "stopwords only")
        if reason:
            filtered[reason] += 1
            continue
        for key, cost in said:
            told = (int(row.time) * 1_000_000, key, _number(cost), _number(row.value), _number(row.weight), kept)
            tuples += [told] * row.repeat
        kept += 1
    return Outcome(tuples, rejects, filtered, kept)
