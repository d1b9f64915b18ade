"""What executors need besides this package."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from streamgroup.spark.executor_package import _REQUIRED

ROOT = Path(__file__).resolve().parents[2]

# All modules of what runs in tasks, as readers and generators import some late; and a zone, which brings tzdata where
# the system has no zones.
LOADED = """
import importlib, json, pkgutil, sys, zoneinfo
for room in ("streamgroup.ingest", "streamgroup.replay", "streamgroup.groupings"):
    for module in pkgutil.walk_packages(importlib.import_module(room).__path__, room + "."):
        importlib.import_module(module.name)
import streamgroup.study.sweep.cells_on_spark
zoneinfo.reset_tzpath(())
zoneinfo.ZoneInfo.no_cache("Europe/Berlin")
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
print(json.dumps([name for name, file in files.items() if "site-packages" in file]))
"""


def plain(name: str) -> str:
    return name.lower().replace("_", "-")


def dependencies(name: str) -> set[str]:
    """Name a package and all that it requires."""
    found, ahead = set[str](), [name]
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += [re.split(r"[^\w.-]", line)[0] for line in requires(one) or () if "extra ==" not in line]
    return found


def test_all_that_tasks_import_is_looked_for() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in json.loads(ran.stdout)} - {"_distutils_hack"}
    assert set(_REQUIRED) <= loaded
    brought = {plain(name) for needed in _REQUIRED for name in dependencies(needed)}
    # numba looks whether PyYAML is there, for a file of settings.
    packages = {name: plain(packages_distributions().get(name, [name])[0]) for name in loaded - {"yaml"}}
    assert {name for name, package in packages.items() if package not in brought} == set()
    documented = " ".join((ROOT / "docs" / "readers.md").read_text().split())
    assert f"libraries of this package: {', '.join(_REQUIRED[:-1])} and {_REQUIRED[-1]}." in documented
