"""Plausibility of times and costs: units that differ between files, years, service times."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from streamgroup.base.errors import DataError
from streamgroup.ingest.parsing.time_patterns import COMPACT
from streamgroup.ingest.parsing.times import NUMERIC, iso
from streamgroup.traces.manifest import Manifest

__all__ = ["TimedFile", "check_units", "span_note", "warnings_of"]

_DAY = 86_400_000_000
_YEAR = 365 * _DAY
_1990 = 631_152_000_000_000
# Where .NET's ticks (100 ns since year 1) of 1970 to 2099 fall when they are taken for ns.
_TICKS = (621_355_968_000_000, 662_380_416_000_000)
_HOUR = 3_600_000_000
# Files of different units that follow each other may overlap by this part of the shorter one: rows come late.
_OVERLAP = 0.01


class TimedFile(NamedTuple):
    """An input, the name of the time format that `auto` found in it, and its first and last kept time in us."""

    name: str
    form: str
    first: int
    last: int


def check_units(files: Sequence[TimedFile]) -> None:
    """Raise a DataError if files have times in different guessed units that do not fit together.

    They fit when files of different units do not overlap, nor leave more than a year between them. Dates in texts are
    not guessed, and left out. Files have a kept row each. DataError names two files.
    """
    ordered = sorted(
        (file for file in files if file.form in NUMERIC or file.form in COMPACT),
        key=lambda file: (file.first, file.last),
    )
    latest: dict[str, TimedFile] = {}
    for file in ordered:
        for other in latest.values():
            shorter = min(file.last - file.first, other.last - other.first)
            if other.form != file.form and min(other.last, file.last) - file.first > _OVERLAP * shorter:
                raise _unit_conflict(other, file, "their times overlap")
        before = max(latest.values(), key=lambda other: other.last, default=file)
        if before.form != file.form and file.first - before.last > _YEAR:
            raise _unit_conflict(before, file, f"there are {(file.first - before.last) / _YEAR:.0f} years between them")
        if file.form not in latest or file.last > latest[file.form].last:
            latest[file.form] = file


def _unit_conflict(one: TimedFile, other: TimedFile, why: str) -> DataError:
    return DataError(
        f"the times of {one.name} look like {one.form}, those of {other.name} like {other.form}, and then {why}",
        "say what they are with --time-format",
    )


def span_note(manifest: Manifest) -> str:
    """Describe when a trace begins and ends, or that there are no times."""
    if manifest.times == "none":
        return "times: none, tuples are numbered; replay them with --arrivals rate=R or the like"
    first, last = manifest.first_timestamp, manifest.last_timestamp
    return "times: none" if first is None or last is None else f"times: {iso(first)} to {iso(last)}"


def warnings_of(
    manifest: Manifest, forms: Sequence[str], now: float | None = None, *, null_only: bool = False
) -> list[str]:
    """Warn of times and costs that are not likely, and of a key that never occurs.

    `forms` names the time formats used, `now` is seconds since 1970, `null_only`: all keys are null.

    Numbers of a trace that begins in 1970 and ends before 1990 are taken as relative times.
    """
    found = ["the key is null in every row: is --key the right column?"] if null_only else []
    numbers = [form for form in dict.fromkeys(forms) if form in NUMERIC]
    first, last = manifest.first_timestamp, manifest.last_timestamp
    if numbers and first is not None and last is not None:
        tomorrow = int((time.time() if now is None else now) * 1e6) + _DAY
        where = "before 1990" if first < _1990 else "after tomorrow" if last > tomorrow else ""
        if where and not (0 <= first < _YEAR and last < _1990):
            found.append(
                f"some times lie {where}, from {iso(first)} to {iso(last)}: is {', '.join(numbers)} the unit? "
                "(--time-format)"
            )
        elif "ns" in numbers and _TICKS[0] <= first <= last < _TICKS[1]:
            found.append(f"all times lie between {iso(first)} and {iso(last)}: are they ticks of .NET, not ns?")
    mean = manifest.mean_cost_us
    if mean is not None and (mean < 1 or mean > _HOUR):
        found.append(f"the mean cost is {_readable_cost(mean)}: is --cost-unit right?")
    return found


def _readable_cost(micros: float) -> str:
    return f"{micros:.3g} us" if micros < 1 else f"{micros / _HOUR:.3g} hours"
