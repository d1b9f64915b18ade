"""Base costs from a file, by key or by key and worker (`--key-cost`): Parquet or CSV with columns key, cost, worker."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.limits import MOST_WORKERS
from streamgroup.base.spelling_hint import suggest
from streamgroup.cluster.service_time import MAX_SERVICE_NS
from streamgroup.traces.hash_and_show_keys import as_binary, key_text
from streamgroup.traces.trace import Trace

__all__ = ["KeyCost", "read_key_cost"]

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# Keys that are Python objects at a time.
_AT_ONCE = 1 << 16
_LOW_BITS = 27

_KEY_KINDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_null,
)


@dataclass(frozen=True)
class KeyCost:
    """Base costs in whole ns by key id: `base_ns` int64[keys], or `by_worker` float64[keys, N]; the other is None."""

    base_ns: I64 | None
    by_worker: F64 | None

    def mean_ns(self, count: I64, workers: int) -> Fraction | list[Fraction]:
        """Return the exact mean cost of a tuple by the count of each key: one, or one for each of the first workers.

        Where the file does not name workers it is one.
        """
        tuples = int(count.sum())
        if self.base_ns is not None:
            return Fraction(_exact_dot(self.base_ns, count), tuples)
        assert self.by_worker is not None
        columns = (self.by_worker[:, worker].astype(np.int64) for worker in range(workers))
        return [Fraction(_exact_dot(column, count), tuples) for column in columns]


def _exact_dot(cost: I64, count: I64) -> int:
    """Add cost x count up: costs are at most 2^53 and counts add up to less than 2^36, so each half fits 63 bits."""
    return (int((cost >> _LOW_BITS) @ count) << _LOW_BITS) + int((cost & ((1 << _LOW_BITS) - 1)) @ count)


@dataclass(frozen=True)
class _Rows:
    """What a file holds: `key` binary (null: the null key), `cost` in us, `worker` or None; `where` names a row."""

    key: pa.LargeBinaryArray
    cost: F64
    worker: I64 | None
    where: Callable[[int], str]


def read_key_cost(path: str | Path, trace: Trace, workers: int) -> KeyCost:
    """Read the cost of every key of a trace, with a column `worker` for each of `workers` workers (ids from 0).

    A key is known by its bytes. An empty cell is the null key in Parquet; in CSV it is the empty key, because there a
    null is the same. Rows for other keys and for workers from `workers` on are not used. Costs are in us and
    become whole ns, halves to even.

    UsageError for a file that is not there or of another kind; DataError for missing columns, cells that are no costs
    or workers, two rows for one key (and worker), and a key of the trace without a row.
    """
    rows = _read(Path(path))
    nanoseconds = _whole_ns(rows)
    encoded = rows.key.dictionary_encode(null_encoding="encode")
    code = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    distinct = encoded.dictionary
    _refuse_repeated(rows, code)
    place = pc.index_in(_trace_keys(trace), value_set=distinct)
    found = pc.fill_null(place, -1).to_numpy().astype(np.int64)
    if (found < 0).any():
        raise _missing(path, trace, found < 0)
    if rows.worker is None:
        costs = np.empty(len(distinct), dtype=np.int64)
        costs[code] = nanoseconds
        return KeyCost(_read_only(costs[found]), None)
    table = np.full((len(distinct), workers), np.nan)
    used = rows.worker < workers
    table[code[used], rows.worker[used]] = nanoseconds[used]
    table = table[found]
    missing = np.isnan(table)
    if missing.any():
        keys = missing.any(axis=1)
        raise _missing(path, trace, keys, f" on worker {int(missing[keys][0].argmax())}")
    return KeyCost(None, _read_only(table))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _trace_keys(trace: Trace) -> pa.ChunkedArray:
    keys = trace.all_keys()
    chunks = []
    while some := list(islice(keys, _AT_ONCE)):
        chunks.append(pa.array(some, pa.large_binary()))
    return pa.chunked_array(chunks, pa.large_binary())


def _missing(path: str | Path, trace: Trace, missing: NDArray[np.bool_], where: str = "") -> DataError:
    ids = np.flatnonzero(missing)
    (key,) = trace.key_bytes([int(ids[0])])
    more = f", and {len(ids) - 1} more keys" if len(ids) > 1 else ""
    return DataError(
        f"--key-cost {path}: no cost for {_shown(key)} of the trace{where}{more}", "add a row for every key"
    )


def _shown(key: bytes | None) -> str:
    return "the null key" if key is None else f"key {key_text(key)!r}"


def _refuse_repeated(rows: _Rows, code: I64) -> None:
    pair = code if rows.worker is None else code * (int(rows.worker.max(initial=0)) + 1) + rows.worker
    order = np.argsort(pair, kind="stable")
    again = order[1:][pair[order[1:]] == pair[order[:-1]]]
    if len(again):
        row = int(again.min())
        who = "" if rows.worker is None else f" on worker {rows.worker[row]}"
        raise DataError(
            f"{rows.where(row)}: a second cost for {_shown(rows.key[row].as_py())}{who}", "keep one of them"
        )


def _whole_ns(rows: _Rows) -> I64:
    sound = np.isfinite(rows.cost) & (rows.cost >= 0)
    if not sound.all():
        row = int(np.argmin(sound))
        raise DataError(f"{rows.where(row)}: the cost {rows.cost[row]} is negative or no number", "write it in us")
    nanoseconds = np.rint(rows.cost * 1000.0)
    if len(nanoseconds) and nanoseconds.max() > MAX_SERVICE_NS:
        row = int(nanoseconds.argmax())
        raise DataError(f"{rows.where(row)}: the cost {rows.cost[row]} us is over 2^53 ns (104 days)", "write it in us")
    return nanoseconds.astype(np.int64)


def _read(path: Path) -> _Rows:
    kind = path.suffix.lower()
    if kind not in (".parquet", ".csv"):
        raise UsageError(f"--key-cost {path}: a file of an unknown kind", "name a .parquet or .csv file")
    if not path.is_file():
        raise UsageError(
            f"--key-cost {path} {'is not a file' if path.exists() else 'does not exist'}",
            "name a .parquet or .csv file",
        )
    try:
        return _read_csv(path) if kind == ".csv" else _read_parquet(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"--key-cost {path}: {error}", "mend the file") from None


def _wanted(path: Path, names: list[str]) -> list[str]:
    for name in ("key", "cost"):
        if name not in names:
            raise DataError(
                f"--key-cost {path}: there is no column {name!r} among {', '.join(names) or 'none'}",
                suggest(name, names) if names else None,
            )
    for name in ("key", "cost", "worker"):
        if names.count(name) > 1:
            raise DataError(f"--key-cost {path}: there are {names.count(name)} columns {name!r}", "keep one of them")
    return [name for name in ("key", "cost", "worker") if name in names]


def _read_parquet(path: Path) -> _Rows:
    # Opened here, because a path that is not UTF-8 is none for the library.
    with path.open("rb") as handle:
        file = pq.ParquetFile(handle)
        table = file.read(columns=_wanted(path, file.schema_arrow.names))
    keys = table.column("key")
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(keys.type.value_type)
    if pa.types.is_integer(keys.type):
        keys = keys.cast(pa.string())
    elif not any(known(keys.type) for known in _KEY_KINDS):
        raise DataError(f"--key-cost {path}: the column key is {keys.type}", "write keys as text or bytes")
    return _rows(table, as_binary(keys), lambda row: f"--key-cost {path}: row {row + 1}")


def _read_csv(path: Path) -> _Rows:
    with path.open("rb") as file:
        head = file.readline()
    if not head.strip():
        raise DataError(f"--key-cost {path}: the first line is empty", "it names the columns: key,cost")
    names = pyarrow.csv.read_csv(pa.BufferReader(head.rstrip(b"\r\n") + b"\n")).column_names
    kinds = {"key": pa.binary(), "cost": pa.string(), "worker": pa.string()}
    options = pyarrow.csv.ConvertOptions(
        column_types=kinds, include_columns=_wanted(path, names), strings_can_be_null=False
    )
    with path.open("rb") as file:
        table = pyarrow.csv.read_csv(file, convert_options=options)
    return _rows(table, as_binary(table.column("key")), lambda row: f"--key-cost {path}: line {_line(path, row)}")


def _line(path: Path, row: int) -> int:
    """Return the line of a row of a CSV file; empty lines are no rows."""
    with path.open("rb") as file:
        full = (number for number, line in enumerate(file, 1) if line.rstrip(b"\r\n"))
        return next(islice(full, row + 1, None))


def _rows(table: pa.Table, keys: pa.LargeBinaryArray, where: Callable[[int], str]) -> _Rows:
    cost = _numbers(table.column("cost"), pa.float64(), where, "cost")
    worker = None
    if "worker" in table.column_names:
        worker = _numbers(table.column("worker"), pa.int64(), where, "worker")
        odd = (worker < 0) | (worker >= MOST_WORKERS)
        if odd.any():
            row = int(np.argmax(odd))
            hint = f"workers are numbered from 0, and there are at most {MOST_WORKERS}"
            raise DataError(f"{where(row)}: there is no worker {worker[row]}", hint)
    return _Rows(keys, cost, worker, where)


def _numbers(column: pa.ChunkedArray, kind: pa.DataType, where: Callable[[int], str], name: str) -> NDArray[Any]:
    """Read cells as numbers; a null or another thing is a DataError that names its row."""
    if pa.types.is_boolean(column.type):
        raise DataError(f"{where(0)}: the {name} is a truth value, not a number", f"write a number: {name}")
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
    if column.null_count:
        raise DataError(f"{where(int(pc.index(column.is_null(), True).as_py()))}: there is no {name}", "fill the cell")
    try:
        return column.cast(kind).to_numpy()  # type: ignore[no-any-return]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        for row, cell in enumerate(column.to_pylist()):
            try:
                pa.scalar(cell).cast(kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
                raise DataError(f"{where(row)}: the {name} {cell!r} is no number", f"write a number: {name}") from None
        raise
