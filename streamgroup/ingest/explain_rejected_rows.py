"""Rejected rows: their text as it is kept, hints by the most frequent reason, and the error when no tuple is left."""

from collections import Counter
from collections.abc import Mapping

from streamgroup.base.errors import DataError
from streamgroup.ingest.parsing.fields import NEVER_CLOSED, TEXT_AFTER_QUOTE
from streamgroup.ingest.parsing.numbers import BAD
from streamgroup.ingest.parsing.times import REASONS
from streamgroup.ingest.readers.protocol import Reader, Split

__all__ = ["FIELDS", "first_time", "hint_of", "no_tuples_left", "reject_text"]

FIELDS = "wrong number of fields"
_TIMES = frozenset(REASONS.values())
# Bytes kept of the text of a rejected row.
TEXT_BYTES = 1024


def reject_text(text: bytes) -> str:
    """Return the text of a rejected row as it is kept: cut, with replacement characters."""
    return text[:TEXT_BYTES].decode(errors="replace")


def no_tuples_left(rows: int, filtered: Counter[str], rejected: Counter[str]) -> DataError:
    """Make the error for an input of which no tuple is left, with the most frequent reasons."""
    why = [f"{count} {reason}" for reason, count in filtered.most_common(4)]
    why += [f"{count} rejected ({reason})" for reason, count in rejected.most_common(4)]
    what = "1 row" if rows == 1 else f"{rows} rows"
    message = f"no tuple is left of {what}" + (f": {', '.join(why)}" if why else "")
    return DataError(message, "look at a few rows with --dry-run")


def hint_of(
    reader: Reader, rejected: Counter[str], examples: Mapping[str, str], shown: str | None, otherwise: str
) -> str:
    """Return a hint that fixes the most frequent reason for rejects, else `otherwise`.

    `examples` has the text of a rejected row for each reason, `shown` is a time as the input has it.
    """
    own = reader.Options.model_fields
    reason = rejected.most_common(1)[0][0] if rejected else ""
    text = examples.get(reason, "")
    if reason in (TEXT_AFTER_QUOTE, NEVER_CLOSED) and '\\"' in text and "escape" in own:
        return "--escape '\\' reads quotes written as \\\""
    # Of a field with a line break, the first line is a quote that is never closed, and each other one has few fields.
    broken = reason in (FIELDS, NEVER_CLOSED) and NEVER_CLOSED in rejected
    if broken and "multiline" not in reader.Options.unused and not reader.options.multiline:
        return "--multiline reads line breaks in quoted fields"
    if reason == FIELDS and "ragged" in own:
        return "--ragged accepts rows with more or fewer fields, as of a delimiter at the end of each row"
    if reason == REASONS[BAD] or (reason in _TIMES and rejected[reason] == rejected.total()):
        what = f"a time reads {shown!r}: say" if shown else "say"
        pattern = reader.options.time_format
        also = "; %s%L is milliseconds since 1970" if "%s" in pattern and "%s%L" not in pattern else ""
        return f"{what} how times are written with --time-format (s, ms, us, ns, filetime, iso8601 or a pattern{also})"
    return otherwise


def first_time(reader: Reader, split: Split) -> str | None:
    """Return the first time among some rows of a split as it is written, None if there is none."""
    layout = reader.layout(split.path)
    for parsed in reader.batches(split._replace(rows=1000), layout):
        written = filter(None, parsed.time.to_pylist())
        for value in written:
            return value.decode(errors="replace")[:80] if isinstance(value, bytes) else str(value)
    return None
