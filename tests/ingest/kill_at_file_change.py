"""An ingest in this process, without Spark, that ends as by `kill -9` at a chosen change of the files at its output.

`python -m tests.ingest.kill_at_file_change RAW OUT MOMENT`: the MOMENT-th change, from 1; 0: it is left alone and tells
how many there are.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from streamgroup.ingest.make_trace import ingest
from streamgroup.ingest.options import make_options

_CHANGES = {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree", "os.link", "os.chmod"}


def ingest_here(raw: Path, out: Path, *, overwrite: bool) -> str:
    """Ingest; give the fingerprint."""
    options = make_options(
        reader="csv", inputs=(str(raw),), output=out, max_rejects="50%", overwrite=overwrite, engine="local"
    )
    return str(ingest(options).manifest.fingerprint)


def main(raw: str, out: str, moment: str) -> None:
    """Ingest, replacing what is there, and die at the moment."""
    seen, folder = 0, str(Path(out).parent)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in _CHANGES or not any(isinstance(one, (str, Path)) and folder in str(one) for one in arguments):
            return
        if event == "open" and not (isinstance(arguments[1], str) and set(arguments[1]) & set("wxa+")):
            return
        seen += 1
        if seen == int(moment):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    ingest_here(Path(raw), Path(out), overwrite=True)
    sys.stdout.write(f"{seen}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
