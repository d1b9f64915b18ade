"""A Spark session on a cluster of two executors, in a process of its own: PySpark has at most one session a process.

As a program it reads a call a line, {"function": "module:name", "arguments": [...]}, and answers each with a line of
JSON; the function takes the session first.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import open_session

MASTER = "local-cluster[2,1,1024]"
# A test kills executors: the tasks on them are tried again, and the executors started again, as often as it does.
SETTINGS = ("spark.task.maxFailures=8", "spark.deploy.maxExecutorRetries=-1")
ROOT = Path(__file__).resolve().parents[2]


class Cluster:
    """The process, as tests see it. Its files are in `folder`; zone, hash seed and cache of code are its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def call(self, function: str, *arguments: Any) -> Any:
        """Call `function(session, *arguments)`, all of JSON, in the process; AssertionError when it raises."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"function": function, "arguments": arguments}), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline() or '{"error": "the process has ended"}')
        assert "error" not in answer, answer["error"]
        return answer["result"]


@contextlib.contextmanager
def open_cluster(folder: Path) -> Iterator[Cluster]:
    """Start the process; afterwards it must end in silence and leave no temporary file."""
    temporary, errors = folder / "tmp", folder / "errors"
    temporary.mkdir()
    own = {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2", "STREAMGROUP_CACHE_DIR": str(folder / "cache")}
    with errors.open("w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.spark.session_on_cluster"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    try:
        yield Cluster(process)
        process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, errors.read_text()) == (0, "")
    assert list(temporary.iterdir()) == []


def main() -> None:
    """Answer calls until there are no more."""
    with open_session(SparkOptions(master=MASTER, driver_memory="1g", spark_conf=SETTINGS)) as session:
        for line in sys.stdin:
            asked = json.loads(line)
            module, name = asked["function"].split(":")
            try:
                answer = {"result": getattr(importlib.import_module(module), name)(session, *asked["arguments"])}
            except BaseException:  # noqa: BLE001 (it is the test's, which shows it)
                answer = {"error": traceback.format_exc()}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
