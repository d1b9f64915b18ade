"""How Spark is to be started, checked before it is."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from streamgroup.base.errors import UsageError

__all__ = ["SparkOptions", "checked"]

# What Spark itself takes for a master. At least 450 MiB of heap, it says when there is less.
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d*)(, *\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|spark://.+|yarn|k8s://.+"
)
_LEAST_KIB = 512 << 10

Options = TypeVar("Options", bound=BaseModel)


class SparkOptions(BaseModel):
    """A Spark URL, settings as `spark.some.name=value`, and the driver's heap in Spark's notation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str = "local[*]"
    spark_conf: tuple[str, ...] = ()
    driver_memory: str = "2g"

    @field_validator("master")
    @classmethod
    def _url(cls, value: str) -> str:
        if not _MASTER.fullmatch(value):
            raise ValueError(f"{value!r} is not a master: local[2], local[*], spark://HOST:PORT, yarn, k8s://...")
        return value

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


def checked(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Make options, with a UsageError that names the option where pydantic would raise its own error."""
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-") if first["loc"] else "options"
        raise UsageError(f"{name}: {first['msg'].removeprefix('Value error, ')}") from None
