"""The keys of a trace under the type that an engine or a grouping takes them for."""

from streamgroup.engines.keys.typed_key_arrays import Keys, make_keys
from streamgroup.traces.trace import Trace

__all__ = ["typed_keys"]


def typed_keys(trace: Trace, kind: str) -> Keys:
    """Read the keys of a trace under a type; DataError, naming the trace and the key, where one is not of it.

    Composite keys, of which the manifest says so, are not taken for strings but for tuples of their parts.
    """
    if kind == "string" and trace.manifest.key_parts:
        kind = ",".join(part.type for part in trace.manifest.key_parts)
    return make_keys(kind, *trace.packed_keys(), source=f"trace {trace.path}")
