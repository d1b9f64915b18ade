"""Fixtures of the pages: commands share the Spark session of the tests, or run without Spark."""

import contextlib

import pytest

from streamgroup.ingest import make_trace
from streamgroup.ingest.sources import table_to_trace
from streamgroup.spark.session import Session
from streamgroup.synth import generate_trace


@pytest.fixture
def _shared_session(spark: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that run in this process use the session of the tests: starting Spark takes seconds."""
    for module in (make_trace, generate_trace, table_to_trace):
        monkeypatch.setattr(module, "start_session", lambda *_: contextlib.nullcontext(spark))


@pytest.fixture
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest in this process: the tutorial ingests the same sample on Spark."""
    monkeypatch.setenv("STREAMGROUP_ENGINE", "local")
