"""Runs a script in the environment of the clone: `import _environment` as the first import of the script.

A Python that has the package (an active environment, say) is kept. Any other is replaced by that of `.venv`.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

_ENVIRONMENT = Path(__file__).resolve().parents[1] / ".venv"
_PYTHON = _ENVIRONMENT / "bin" / "python"

# Found by path alone in a clone, the package lacks the libraries that it needs: altair is one of them.
if not (find_spec("streamgroup") and find_spec("altair")):
    if not _PYTHON.exists() or Path(sys.prefix) == _ENVIRONMENT:
        print(f"error: streamgroup is not installed in {_ENVIRONMENT}\n  scripts/demo installs it", file=sys.stderr)
        sys.exit(3)
    os.execv(_PYTHON, [str(_PYTHON), *sys.argv])
