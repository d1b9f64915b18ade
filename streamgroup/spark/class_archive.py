"""Class-data archive of the JVM: halves its start-up.

The first session on a machine writes it when it ends (`-XX:ArchiveClassesAtExit`), later ones map it into memory. The
JVM itself refuses one that does not fit its version or the jars, and then starts without.
"""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from streamgroup.base.storage.cache_directory import cache_root
from streamgroup.base.storage.process_tag import owner_is_alive, owner_tag

__all__ = ["ClassArchive", "find_archive"]

# Archives of other versions of Java or Spark that are kept, the newest.
_KEPT = 1
_UNFINISHED = ".unfinished-"


class ClassArchive(NamedTuple):
    """An option for the JVM, the archive, and its name until the JVM has written it (None: it is there already)."""

    option: str
    path: Path
    unfinished: Path | None

    def keep(self) -> None:
        """Keep the archive that a JVM wrote when it ended; no effect if it wrote none."""
        with contextlib.suppress(OSError):
            if self.unfinished is not None and self.unfinished.stat().st_size > 0:
                self.unfinished.replace(self.path)
                others = [entry for entry in self.path.parent.glob("*.jsa") if entry != self.path]
                for entry in sorted(others, key=lambda entry: entry.stat().st_mtime)[:-_KEPT]:
                    entry.unlink()

    def discard(self) -> None:
        """Remove the archive, with which the JVM did not start."""
        with contextlib.suppress(OSError):
            self.path.unlink()


def find_archive(java: str, home: Path) -> ClassArchive | None:
    """Find the archive for a Java and a Spark (`home`), or choose where to write it; None without a cache directory."""
    try:
        program = Path(java).resolve()
        jars = home / "jars"
        found = [f"{entry.name} {entry.stat().st_size}" for entry in sorted(jars.iterdir())]
        what = "\n".join([str(program), str(program.stat().st_mtime_ns), str(jars), *found])
        folder = cache_root() / "classes"
        folder.mkdir(parents=True, exist_ok=True)
        for entry in folder.glob(f"*{_UNFINISHED}*"):
            if not owner_is_alive(entry.name.partition(_UNFINISHED)[2]):
                entry.unlink()
        path = folder / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.jsa"
        if path.exists():
            return ClassArchive(f"-XX:SharedArchiveFile={path}", path, None)
        if not os.access(folder, os.W_OK):
            return None
    except (OSError, RuntimeError):
        # A RuntimeError: no home directory is known.
        return None
    unfinished = folder / f"{path.name}{_UNFINISHED}{owner_tag()}"
    return ClassArchive(f"-XX:ArchiveClassesAtExit={unfinished}", path, unfinished)
