"""Finds the Python that runs Flink's jobs: one of its own, since PyFlink needs an older py4j and pyarrow."""

import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from streamgroup.base.errors import EnvironmentFault
from streamgroup.spark.find_java_and_spark import find_java

__all__ = ["ROOT", "FlinkPlace", "find_flink"]

# The folder that the package is in.
ROOT = Path(__file__).parents[3]
_HOW = "scripts/flink-environment makes an environment with it; --flink-python names the Python of another one"
# What the job imports, and the version of Flink.
_CHECK = (
    "import importlib.metadata as m, pyflink.datastream, numba, numpy, pyarrow, pydantic, mmh3; "
    "print(m.version('apache-flink'))"
)
# How long a job may take to start and to end, in s, whatever the machine is doing besides.
_ALLOWED_S = 120.0


class FlinkPlace(NamedTuple):
    """The Python that has PyFlink (None: `.flink` here, or beside the package); seconds to add to the time limit."""

    python: str | None = None
    allowed_s: float = _ALLOWED_S


def find_flink(place: FlinkPlace) -> tuple[Path, str]:
    """Find the Python that runs Flink's jobs, and the version of Flink; EnvironmentFault without, or without Java."""
    tried = [Path(place.python)] if place.python else [
        folder / ".flink" / "bin" / "python" for folder in (Path.cwd(), ROOT)
    ]  # fmt: skip
    for python in tried:
        if python.exists():
            find_java("Flink")
            # Not resolved: the link is what tells Python of its environment.
            return python.absolute(), _version(python.absolute())
    missing = list(map(str, dict.fromkeys(tried)))
    raise EnvironmentFault(
        f"there is no PyFlink: {' and '.join(missing)} {'does' if len(missing) == 1 else 'do'} not exist", _HOW
    )


@cache
def _version(python: Path) -> str:
    try:
        asked = subprocess.run([python, "-c", _CHECK], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentFault(f"{python} does not run: {error}", _HOW) from None
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["it says nothing"]
        raise EnvironmentFault(f"{python} cannot run jobs of Flink: {said[-1]}", _HOW)
    return asked.stdout.split()[-1]
