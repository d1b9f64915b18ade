"""What a run may take."""

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_CELLS, fits


def test_what_is_too_large_is_told_with_what_to_lower() -> None:
    fits(MOST_CELLS, MOST_CELLS, "a table", "lower capacity")
    with pytest.raises(UsageError, match=f"a table would take {MOST_CELLS + 1} cells .* {MOST_CELLS}") as told:
        fits(MOST_CELLS + 1, MOST_CELLS, "a table", "lower capacity")
    assert told.value.hint == "lower capacity"
