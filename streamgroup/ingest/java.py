"""The Java of this machine, which Spark needs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from streamgroup.base.errors import EnvironmentFault

__all__ = ["find_java"]

_OLDEST = 17
_HOW = (
    "install Java 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@17) "
    "and set JAVA_HOME if it is not on the PATH"
)


def find_java() -> tuple[str, int]:
    """Find Java in JAVA_HOME or on the PATH: its path and major version; EnvironmentFault below 17 or
    without.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise EnvironmentFault("there is no Java on this machine, and Spark needs it", _HOW)
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        where = f"JAVA_HOME is {home}, but" if home else ""
        raise EnvironmentFault(f"{where} {java} does not run".strip(), _HOW) from None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    if match is None:
        raise EnvironmentFault(f"{java} does not tell its version", _HOW)
    version = int(match[1])
    if version < _OLDEST:
        raise EnvironmentFault(f"{java} is Java {version}, and Spark needs {_OLDEST} or newer", _HOW)
    return java, version
