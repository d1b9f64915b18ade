"""Arrow arrays made and read without pandas."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgroup.base.arrow_numpy import arrow, column, numbers
from streamgroup.traces.statistics.count_ids import add_counts
from tests.traces_by_hand import write_trace


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.int64()),
        ([1, None, -(2**63), 2**63 - 1], pa.int64()),
        ([None] * 9, pa.float64()),
        ([0.5, None, 1e300], pa.float64()),
        ([True, None, False] * 5, pa.bool_()),
        (["", None, "a,b", "中文\x00"], pa.string()),
        ([None], pa.string()),
    ],
)
def test_a_column_is_what_arrow_itself_would_make(values: list[Any], kind: pa.DataType) -> None:
    made = column(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@pytest.mark.parametrize("dtype", ["int64", "uint32", "int32", "float64", "float32"])
def test_numbers_go_there_and_back(dtype: str) -> None:
    values = np.arange(20, dtype=dtype)[::3]
    made = arrow(values)
    assert made.equals(pa.array(values))
    assert np.array_equal(numbers(made), values)
    assert np.array_equal(numbers(pa.chunked_array([made, made.slice(2)])), np.concatenate([values, values[2:]]))
    assert numbers(made.slice(7)).dtype == values.dtype


def test_a_replay_imports_neither_pandas_nor_polars_nor_spark(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t", [(i, b"a", None) for i in range(9)])
    program = (
        "import sys; from pathlib import Path\n"
        "from streamgroup.replay.scenario.options import ReplayOptions\n"
        "from streamgroup.study.replay_run import run_to_directory\n"
        f"run_to_directory({str(trace)!r}, ReplayOptions('kg', 2), Path({str(tmp_path / 'run')!r}), log=True)\n"
        "print(sorted({'pandas', 'polars', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("keys", [4, 5, 6, 100])
def test_counts_are_added_however_many_keys_there_are(keys: int) -> None:
    count = np.arange(keys)
    add_counts(count, np.array([3, 0, 3, 3, 2], np.uint32))
    assert count.tolist() == [1, 1, 3, 6, *range(4, keys)]
    add_counts(count, np.empty(0, np.uint32))
    assert count.tolist() == [1, 1, 3, 6, *range(4, keys)]
