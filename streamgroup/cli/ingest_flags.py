"""The flags that `ingest` has for every source."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

import typer

from streamgroup.cli.shared_flags import DriverMemory, MadeTrace, SparkConf
from streamgroup.cli.typer_command import Formatted

__all__ = ["IngestFlags", "default_of", "values_of"]


def default_of(name: str, model: str = "CommonOptions") -> Any:
    """Return the default of a flag: that of the option, from a model of `ingest.options` that is loaded when needed."""

    def read() -> Any:
        from streamgroup.ingest import options

        return getattr(options, model).model_fields[name].default

    return field(default_factory=read)


# Flags whose defaults are those of the options: given or not makes a difference to them.
_SPARK = ("master", "remote", "driver_memory")


@dataclass(frozen=True, kw_only=True)
class IngestFlags(Formatted):
    """The flags of every ingest: options of `CommonOptions`, by name."""

    output: MadeTrace
    cost_unit: Annotated[Literal["s", "ms", "us", "ns"], typer.Option("--cost-unit", help="Unit of the cost.")] = (
        default_of("cost_unit")
    )
    time_format: Annotated[
        str,
        typer.Option("--time-format", metavar="FORMAT", help="auto, s, ms, us, ns, filetime, iso8601, or a pattern."),
    ] = default_of("time_format")
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="Zone of times without one of their own (default: UTC)."),
    ] = None
    split_words: Annotated[bool, typer.Option("--split-words", help="Make a tuple of each word of the key.")] = False
    stopwords: Annotated[
        str | None,
        typer.Option("--stopwords", metavar="FILE|english", help="Words to leave out: a file, one a line, or ours."),
    ] = None
    null_keys: Annotated[
        Literal["drop", "keep", "fail"], typer.Option("--null-keys", help="What to do with rows without a key.")
    ] = default_of("null_keys")
    null_values: Annotated[
        list[str], typer.Option("--null-values", metavar="TEXT,...", help="Texts that mean null, as NA,-; repeatable.")
    ] = ()  # type: ignore[assignment]
    limit: Annotated[int | None, typer.Option("--limit", metavar="ROWS", help="Read no more input rows.")] = None
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Keep tuples from this time on: ISO, or in the unit of --time-format."
        ),
    ] = None
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Keep tuples before this time.")] = None
    head: Annotated[int | None, typer.Option("--head", metavar="TUPLES", help="Keep the first tuples only.")] = None
    sample_keys: Annotated[
        str | None, typer.Option("--sample-keys", metavar="P", help="Keep this share of the keys, as in 0.1 or 10%.")
    ] = None
    max_rejects: Annotated[
        str, typer.Option("--max-rejects", metavar="N|P%", help="Rows that may be unreadable; past it exit 4.")
    ] = default_of("max_rejects")
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark master (default: local[*]).", show_default=False),
    ] = None
    remote: Annotated[
        str | None, typer.Option("--remote", metavar="URL", help="Spark Connect server, as sc://HOST:PORT.")
    ] = None
    spark_conf: SparkConf = ()  # type: ignore[assignment]
    driver_memory: DriverMemory = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what the first rows become; write nothing.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing trace.")] = False


def values_of(flags: IngestFlags) -> dict[str, Any]:
    """Return the options that flags ask for, by name; those of Spark that were not given are left out."""
    values = {field.name: getattr(flags, field.name) for field in fields(flags)}
    for name in ("form", "json"):
        del values[name]
    return {name: value for name, value in values.items() if value is not None or name not in _SPARK}
