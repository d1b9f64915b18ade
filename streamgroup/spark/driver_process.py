"""The JVM of Spark's driver as a child process, and the connection of PySpark to it."""

import contextlib
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from streamgroup.base.errors import EnvironmentFault

__all__ = ["Connection", "DriverProcess", "exclusive_gateway"]

# Seconds between two looks whether the JVM is up.
_POLL = 0.02


class Connection(NamedTuple):
    """Where the JVM listens for PySpark, and the secret that opens it."""

    port: int
    secret: str

    def environment(self) -> dict[str, str]:
        """Return the variables by which PySpark connects to a JVM that runs already."""
        return {"PYSPARK_GATEWAY_PORT": str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}


class DriverProcess:
    """The JVM, started by `spark-submit`. It leads a process group of its own and ends when its stdin is closed.

    So it gets no Ctrl-C of the terminal, ends soon after this process however that ends, and can be killed from any
    thread and at any time, also while it starts. Python workers are in a process group that PySpark's daemon makes, and
    end a moment after the JVM, when the daemon's stdin closes.
    """

    def __init__(self, home: Path, environment: Mapping[str, str], folder: Path) -> None:
        """`home` is that of Spark, `folder` an existing directory for what the JVM writes about its connection."""
        self._program = str(home / "bin" / "spark-submit")
        self._address = folder / "driver"
        # Two variables of PySpark: its own launcher sets them.
        connecting = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address)}
        self._environment = {**environment, **connecting}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    @property
    def returncode(self) -> int | None:
        """Return the exit code; None while the JVM runs."""
        return None if self._process is None else self._process.returncode

    def start(self, settings: Mapping[str, str], log: Path) -> None:
        """Start the JVM with settings of Spark; what it prints goes to `log`."""
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        self._address.unlink(missing_ok=True)
        with self._lock, log.open("wb") as sink:
            if self._killed:
                raise EnvironmentFault("Spark was stopped while it started")
            self._process = subprocess.Popen(
                [self._program, *options, "pyspark-shell"],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                env=self._environment,
                start_new_session=True,
            )

    def connection(self) -> Connection:
        """Wait until the JVM is up; EnvironmentFault when it ends before."""
        assert self._process is not None
        while not self._address.exists():
            if self._process.poll() is not None and not self._address.exists():
                raise EnvironmentFault(f"the JVM ended with exit code {self._process.returncode}")
            time.sleep(_POLL)
        content = self._address.read_bytes()
        port, length = struct.unpack_from(">ii", content)
        return Connection(port, content[8 : 8 + length].decode())

    def kill(self) -> None:
        """Kill the JVM and the processes of its group at once, or keep it from being started."""
        with self._lock:
            self._killed = True
            if self._process is None:
                return
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._close_stdin()

    def stop(self, seconds: float) -> None:
        """Let the JVM end in order; kill it when it has not after `seconds`."""
        if self._process is not None:
            self._close_stdin()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                return
            self.kill()

    def _close_stdin(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


@contextlib.contextmanager
def exclusive_gateway() -> Iterator[None]:
    """Make PySpark connect to a JVM of ours; afterwards, back to the one it had before. EnvironmentFault when in use.

    PySpark connects to one JVM in the life of a process: it keeps the connection in a class, and no call drops it. This
    is the one place that reaches into PySpark: a second session would otherwise call a JVM that has ended.
    """
    from pyspark.core import context

    (owner,) = (kind for kind in vars(context).values() if isinstance(kind, type) and "_gateway" in vars(kind))
    context_class: Any = owner
    if context_class._active_spark_context is not None:
        raise EnvironmentFault(
            "a Spark session is open in this process already", "stop it first, or use it from Python: see the docs"
        )
    before = context_class._gateway, context_class._jvm
    context_class._gateway = context_class._jvm = None
    try:
        yield
    finally:
        context_class._gateway, context_class._jvm = before
