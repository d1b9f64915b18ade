"""How exactly a figure has to agree with the slow twin's: counts to the unit, percentiles within half a percent."""

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgroup.metrics import run_tables as tables_of_a_run
from streamgroup.replay.accounting.outcome import Outcome

__all__ = ["assert_rows_agree", "assert_same", "frames", "tables"]

PERCENTILES = {f"latency_{name}_ms" for name in ("p5", "p25", "p50", "p75", "p95", "p99", "p999")}
PERCENTILES |= {"source_wait_ms_p99", "result_delay_ms_p99"}


def frames(found: dict[str, pa.Table]) -> dict[str, pl.DataFrame]:
    """Give tables as Polars sees them."""
    return {name: pl.DataFrame(table) for name, table in found.items()}


def tables(outcome: Outcome) -> dict[str, pl.DataFrame]:
    return frames(tables_of_a_run.tables(outcome))


def assert_same(name: str, found: Any, expected: Any) -> None:
    if expected is None or isinstance(expected, int | str):
        assert found == expected, name
        assert type(found) is type(expected), name
    elif found == expected:
        # Most are, and to be asked whether they are close takes a tenth of the time of a comparison with a twin.
        return
    elif name in PERCENTILES:
        assert found == pytest.approx(expected, rel=0.005, abs=0), name
    else:
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15), name


def assert_rows_agree(frame: pl.DataFrame, rows: list[dict[str, Any]]) -> None:
    assert frame.columns == [*rows[0], "schema_version"]
    assert frame.height == len(rows)
    for found, row in zip(frame.to_dicts(), rows, strict=True):
        for column, value in row.items():
            assert_same(column, found[column], value)
