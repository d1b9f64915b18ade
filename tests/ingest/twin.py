"""A trace as plain lists, and the slow twin of an ingest."""

import csv
import io
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq


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
