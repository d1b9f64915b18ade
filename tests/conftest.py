"""Fixtures that several rooms share."""

from collections.abc import Iterator

import pytest

from streamgroup.spark.options import SparkOptions
from streamgroup.spark.session import Session, open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Session]:
    """Open the session of this process: PySpark has no more than one at a time."""
    with open_session(SparkOptions(master="local[2]", driver_memory="1g")) as session:
        yield session
