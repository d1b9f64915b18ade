"""A Spark Connect server of our own, on a port that is free."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from streamgroup.spark.find_java_and_spark import spark_home

MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def connect_server(folder: Path, master: str = "local[2]", python_path: str = "") -> Iterator[str]:
    """Start a server whose files go to `folder`, and give its URL; its Python finds modules in `python_path` only."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": folder / "local",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -XX:TieredStopAtLevel=1 -Duser.dir={folder}",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", master, *options, "--class", MAIN]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path}
    log = folder / "server.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*command, "spark-internal"], stdout=sink, stderr=sink, env=environment, cwd=folder, start_new_session=True
        )
    try:
        until = time.monotonic() + 600
        while True:
            assert time.monotonic() < until, log.read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
