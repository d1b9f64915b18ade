"""The version of the tables of a run: it changes when a column changes its name or meaning."""

__all__ = ["SCHEMA_VERSION"]

SCHEMA_VERSION = 1
