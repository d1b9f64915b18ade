"""Key bytes of every layout of Arrow, without the functions of Arrow that are slow to load."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import streamgroup as sg
from streamgroup.traces.hash_and_show_keys import as_binary

TYPES = pa.string(), pa.binary(), pa.large_string(), pa.large_binary()


@given(st.lists(st.none() | st.text(max_size=3)), st.sampled_from(TYPES), st.integers(0, 5), st.integers(0, 5))
def test_keys_of_every_layout_become_large_binary(
    keys: list[str | None], kind: pa.DataType, begin: int, count: int
) -> None:
    array = pa.array(keys, pa.string()).cast(kind).slice(min(begin, len(keys)), count)
    found = as_binary(array)
    found.validate(full=True)
    assert found.equals(array.cast(pa.large_binary()))


def test_a_replay_does_without_the_functions_of_arrow(tmp_path: Path) -> None:
    """Their import takes longer than reading a small trace."""
    csv = tmp_path / "raw.csv"
    csv.write_text("timestamp,key\n" + "".join(f"{i},k{i % 5}\n" for i in range(40)))
    sg.ingest("csv", csv, output=tmp_path / "t.trace", engine="local")
    code = (
        "import sys, streamgroup as sg\n"
        f"sg.replay({str(tmp_path / 't.trace')!r}, grouping='kg', workers=2)\n"
        "sys.exit('pyarrow.compute' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
