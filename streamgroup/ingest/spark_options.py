"""How Spark is to be started, checked before it is."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from streamgroup.base.errors import UsageError

__all__ = ["SparkOptions", "make_spark_options"]


class SparkOptions(BaseModel):
    """A Spark URL, settings as `spark.some.name=value`, and the driver's heap in Spark's notation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str = "local[*]"
    spark_conf: tuple[str, ...] = ()
    driver_memory: str = "2g"

    @field_validator("driver_memory")
    @classmethod
    def _memory(cls, value: str) -> str:
        if not re.fullmatch(r"[1-9]\d*[kmgtKMGT]", value):
            raise ValueError("a number with k, m or g, as in 2g")
        return value

    @field_validator("spark_conf")
    @classmethod
    def _pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pair in value:
            if not re.match(r"spark\.[^=\s]+=", pair):
                raise ValueError(f"{pair!r} is not spark.some.name=value")
        return value


def make_spark_options(**values: Any) -> SparkOptions:
    """Make options, with a UsageError that names the option where pydantic would raise its own error."""
    try:
        return SparkOptions(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"{name}: {first['msg'].removeprefix('Value error, ')}") from None
