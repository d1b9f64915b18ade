"""Options of a Spark session, checked before one is started."""

import re
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from streamgroup.base.errors import UsageError
from streamgroup.base.pydantic_errors import first_problem

__all__ = ["SparkOptions", "check_no_spark", "checked", "server_name"]

# What Spark itself takes for a master. At least 450 MiB of heap, it says when there is less.
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d*)(, *\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|spark://.+|yarn|k8s://.+"
)
_LEAST_KIB = 512 << 10
_REMOTE = re.compile(r"sc://([^\s:/;@]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?/?(;[^;=\s]+=[^;\s]*)*;?")

_LAST_PORT = 65_535

Options = TypeVar("Options", bound=BaseModel)


class SparkOptions(BaseModel):
    """Where Spark runs: `master`, or `remote`, the URL of a Spark Connect server.

    `spark_conf` are settings as `spark.some.name=value`; `driver_memory` is the driver's heap in Spark's notation. A
    remote session has a driver already: `master` and `driver_memory` are not to be given for one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str = "local[*]"
    remote: str | None = None
    spark_conf: tuple[str, ...] = ()
    driver_memory: str = "2g"

    @field_validator("master")
    @classmethod
    def _url(cls, value: str) -> str:
        if not _MASTER.fullmatch(value):
            raise ValueError(f"{value!r} is not a master: local[2], local[*], spark://HOST:PORT, yarn, k8s://...")
        return value

    @field_validator("remote")
    @classmethod
    def _server(cls, value: str | None) -> str | None:
        if value is None:
            return None
        found = _REMOTE.fullmatch(value)
        if not found or not 0 < int((found[2] or ":1")[1:]) <= _LAST_PORT:
            raise ValueError(f"{server_name(value)!r} is not a Spark Connect server: sc://HOST:PORT")
        return value

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        given = [name for name in ("master", "driver_memory") if name in self.model_fields_set]
        if self.remote is not None and given:
            flag = "--" + given[0].replace("_", "-")
            raise ValueError(f"{flag} starts a driver, and --remote names one that runs; leave one of them out")
        return self

    @property
    def place(self) -> str:
        """Return where Spark runs, as people see it: the master, or the server without its parameters."""
        return self.master if self.remote is None else server_name(self.remote)

    @field_validator("driver_memory")
    @classmethod
    def _memory(cls, value: str) -> str:
        found = re.fullmatch(r"([1-9]\d*)([kmgtKMGT])", value)
        if found is None:
            raise ValueError("a number with k, m or g, as in 2g")
        if int(found[1]) << 10 * "kmgt".index(found[2].lower()) < _LEAST_KIB:
            raise ValueError(f"{value} is too little for Spark to start, which takes 512m")
        return value

    @field_validator("spark_conf")
    @classmethod
    def _pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pair in value:
            if not re.match(r"spark\.[^=\s]+=", pair):
                raise ValueError(f"{pair!r} is not spark.some.name=value")
        return value


def server_name(remote: str) -> str:
    """Return the URL of a server without its parameters, which may hold a token."""
    return remote.partition(";")[0].rstrip("/")


def check_no_spark(given: Mapping[str, Any]) -> None:
    """Refuse options of Spark's among those that are given where `--engine` is local; UsageError names the first."""
    for name in SparkOptions.model_fields:
        if given.get(name):
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is for Spark, and --engine is local", "leave one of the two out")


def checked(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Make options, with a UsageError that names the option where pydantic would raise its own error."""
    try:
        return kind(**values)
    except ValidationError as error:
        place, reason, _ = first_problem(error)
        flag = "--" + place.partition(".")[0].replace("_", "-")
        raise UsageError(f"{flag}: {reason}" if place else reason) from None
