"""Finds the Java and the Spark of this machine."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from streamgroup.base.errors import EnvironmentFault

__all__ = ["find_java", "linked_home", "spark_home"]

_OLDEST = 17
_HOW = (
    "install Java 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@17) "
    "and set JAVA_HOME if it is not on the PATH"
)


def find_java(engine: str = "Spark") -> tuple[str, int]:
    """Find Java for an engine, in JAVA_HOME or on the PATH: its path and major version.

    EnvironmentFault without, or below 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise EnvironmentFault(f"there is no Java on this machine, and {engine} needs it", _HOW)
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        where = f"JAVA_HOME is {home}, but" if home else ""
        raise EnvironmentFault(f"{where} {java} does not run".strip(), _HOW) from None
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if match is None:
        raise EnvironmentFault(f"{java} does not report its version", _HOW)
    version = int(match[1])
    if version < _OLDEST:
        raise EnvironmentFault(f"{java} is Java {version}, and {engine} needs {_OLDEST} or newer", _HOW)
    return java, version


def spark_home() -> Path:
    """Find the Spark that PySpark brings."""
    from pyspark.find_spark_home import _find_spark_home

    find: Any = _find_spark_home
    return Path(find())


def linked_home(place: Path) -> Path:
    """Make a Spark home of links. The workers of local-cluster write to their Spark home, whatever the settings."""
    place.mkdir()
    for entry in spark_home().iterdir():
        if entry.name != "work":
            (place / entry.name).symlink_to(entry)
    return place
