"""Raw data to traces, on Spark: the sources, readers and parsers, and the pipeline of
DataFrames; `from_dataframe` for notebooks.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgroup.ingest.sources.table_to_trace import from_dataframe

__all__ = ["from_dataframe"]


def __getattr__(name: str) -> Any:
    """Import `from_dataframe` when it is asked for: the package itself must stay quick to import."""
    if name != "from_dataframe":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from streamgroup.ingest.sources.table_to_trace import from_dataframe

    return from_dataframe
