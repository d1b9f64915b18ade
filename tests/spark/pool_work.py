"""Work for `run_each`: each job tells what is to happen in its task. As a program: jobs on a cluster of two."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from streamgroup.base.errors import DataError
from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import open_session
from streamgroup.spark.task_pool import run_each

JOBS = ("sleep 1", "raise", "fault", "kill", "lose once", "pid", "pid", "pid", "echo")


def work(job: str) -> object:
    """Do what a job says: its words are what to do, and what with."""
    what, *more = job.split(" ", 1)
    if what == "sleep":
        time.sleep(float(more[0]))
    elif what == "raise":
        raise ValueError("two\n  lines")
    elif what == "fault":
        raise DataError("the data are not sound", "mend them")
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "lose":
        _lose(Path(more[0]))
    elif what == "pid":
        return os.getpid()
    return job


def _lose(seen: Path) -> None:
    """End the executor when the task is first tried: above this process is a daemon, above that the JVM."""
    if not seen.exists():
        seen.touch()
        stat = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(stat.rsplit(")", 1)[1].split()[1]), signal.SIGKILL)


def main(seen: str) -> None:
    """Print what ended, in the order in which it did."""
    jobs = [job.replace("once", seen) for job in JOBS]
    with open_session(SparkOptions(master="local-cluster[2,1,1024]", driver_memory="1g")) as session:
        for number, result, error in run_each(session, work, jobs):
            sys.stdout.write(json.dumps([number, result, error]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
