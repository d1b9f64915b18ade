"""Makes the synthetic traces that a sweep asks for (`--synth`), once."""

from collections.abc import Iterable
from pathlib import Path

from streamgroup.base.errors import DataError, UsageError
from streamgroup.base.progress import Watcher
from streamgroup.base.storage.storage_path import locate
from streamgroup.study.sweep.value_lists import combinations_of
from streamgroup.synth.generate_trace import parameters, recorded_parameters, synthesise
from streamgroup.traces.manifest import read_manifest

__all__ = ["TRACES", "synth_traces"]

# The directory of the traces within that of the sweep.
TRACES = "traces"
_MOST = 1000


def synth_traces(texts: Iterable[str], output: Path, progress: Watcher) -> list[str]:
    """Make the traces of texts such as `zipf:exponent=0.8..2.0..0.2,seed=0..2`; return their paths in order.

    A value that is a list itself has semicolons: `posg:values=25;5;1`. Traces lie in `output`/traces, named by what the
    text says: `zipf-exponent=0.8-seed=0.trace`. One that is there with
    the same parameters is kept. UsageError for a generator or parameter that does not exist, before any is made.
    """
    wanted: dict[Path, tuple[str, dict[str, str]]] = {}
    for text in texts:
        for name, given in combinations_of(text, "--synth"):
            given = {key: value.replace(";", ",") for key, value in given.items()}
            parameters(name, given)
            said = "".join(f"-{key}={value}" for key, value in given.items())
            wanted[output / TRACES / f"{name}{said}.trace".replace("/", "_")] = (name, given)
    if len(wanted) > _MOST:
        raise UsageError(f"--synth makes {len(wanted)} traces, and at most {_MOST} are taken", "list less")
    missing = {path: one for path, one in wanted.items() if not _is_there(path, *one)}
    if missing:
        progress.note(f"making {len(missing)} of {len(wanted)} traces in {output / TRACES}")
    for path, (name, given) in missing.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        synthesise(name, given, locate(path), engine="local", overwrite=True)
    return [locate(path).reference for path in wanted]


def _is_there(path: Path, name: str, given: dict[str, str]) -> bool:
    try:
        manifest = read_manifest(path)
    except DataError:
        return False
    asked, seed = recorded_parameters(parameters(name, given))
    return (manifest.generator, manifest.generator_parameters, manifest.seed) == (name, asked, seed)
