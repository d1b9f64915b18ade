"""`validate`: checks a trace against the format."""

from dataclasses import dataclass

from streamgroup.base.errors import DataError
from streamgroup.cli.console import Console
from streamgroup.cli.shared_flags import Trace
from streamgroup.cli.typer_command import Formatted

__all__ = ["Options", "run"]


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `validate`."""

    trace: Trace


def run(console: Console, options: Options) -> None:
    """Check every promise of the trace format; exit 4 when one is broken, 0 when there are only notes."""
    from streamgroup.traces.checks.validate import validate

    findings = [finding._asdict() for finding in validate(options.trace)]
    errors = sum(finding["level"] == "error" for finding in findings)
    if findings or console.form != "table":
        console.rows(findings, ("level", "check", "message"))
    if errors:
        raise DataError(f"{options.trace} breaks {errors} of the format's promises", "make the trace again")
    if console.form == "table":
        console.text(f"ok: {options.trace} is as the trace format says")
