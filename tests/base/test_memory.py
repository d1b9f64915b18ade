"""Memory that is free goes back to the system."""

import subprocess
import sys

import pytest

PROGRAM = """
import threading
from pathlib import Path

import numpy as np

from streamgroup.base.memory import release_memory

def resident():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) >> 10

def work(kept):
    # Pieces of 100 KB, every hundredth of which stays: the heap cannot shrink from its end.
    kept.append([np.ones(12_800) for _ in range(3_000)][::100])

kept = []
for _ in range(2):
    thread = threading.Thread(target=work, args=(kept,))
    thread.start()
    thread.join()
before = resident()
release_memory()
print(before, resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_threads_freed_goes_back_to_the_system() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120)
    before, after = map(int, ran.stdout.split())
    assert before > 250, ran.stdout
    assert after < before / 2, ran.stdout
