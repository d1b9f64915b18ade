"""`where`: which worker or workers a key goes to."""

import csv
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Annotated, Any

import typer

from streamgroup.base.errors import UsageError
from streamgroup.cli.console import Console
from streamgroup.cli.reader_and_generator_commands import complete_grouping
from streamgroup.cli.replay_flags import DEFAULTS, SEED_HELP, HashSeed, KeyType
from streamgroup.cli.shared_flags import Workers
from streamgroup.cli.typer_command import Formatted

__all__ = ["Options", "run"]

_STDIN = "-"
_COLUMNS = ("key", "workers")


@dataclass(frozen=True, kw_only=True)
class Options(Formatted):
    """The flags of `where`."""

    keys: Annotated[
        list[str],
        typer.Argument(metavar="KEY...", help="Keys; - reads them from stdin, one a line.", show_default=False),
    ]
    grouping: Annotated[
        list[str],
        typer.Option(
            "--grouping", "-g", metavar="NAME[:P=V,...]", autocompletion=complete_grouping, show_default=False,
            help="Name and parameters, as in greedy_d:d=3, or a file, as in ./mine.py:x=1.",
        ),
    ]  # fmt: skip
    workers: Workers
    hash_seed: HashSeed = None
    seed: Annotated[int, typer.Option("--seed", help=SEED_HELP)] = DEFAULTS.seed
    key_type: KeyType = DEFAULTS.key_type


def run(console: Console, options: Options) -> None:
    """Print which worker each key goes to, or its candidates in their order, as a replay would choose among them.

    No trace is needed. A grouping that treats hot keys differently prints the candidates of a cold key, and says so.
    """
    if len(options.grouping) != 1:
        raise UsageError("where takes one -g", "run it once for each grouping")
    if options.keys.count(_STDIN) > 1:
        raise UsageError("stdin can be read once: - is there twice")
    from streamgroup.study.key_destinations import composed, hash_destinations, hashed, keys_at_once
    from streamgroup.traces.hash_and_show_keys import key_text

    place = hash_destinations(
        options.grouping[0], options.workers,
        hash_seed=options.hash_seed, seed=options.seed, key_type=options.key_type,
    )  # fmt: skip

    console.facts(place.selection.params.facts(options.workers))

    def answers() -> Iterator[list[tuple[str, list[int]]]]:
        keys, said = _keys(options.keys), False
        while asked := list(islice(keys, keys_at_once(options.workers))):
            values = composed(asked, options.key_type)
            found = place.destinations(hashed(values))
            if found.remark and not said:
                console.note(f"{place.selection.text}: {found.remark}")
                said = True
            yield list(zip(map(str, map(key_text, values)), found.workers.tolist(), strict=True))

    if console.form in ("json", "jsonl"):
        _write_json(answers(), is_list=console.form == "json")
    elif console.form == "csv":
        _write_csv(answers())
    else:
        rows = [
            {"key": key, "workers": _shown(workers, options.workers)} for key, workers in chain.from_iterable(answers())
        ]
        console.rows(rows, _COLUMNS)


def _keys(given: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of all keys; a line ends as in raw data, with a line feed or a carriage return and one."""
    for key in given:
        if key == _STDIN:
            yield from (line.removesuffix(b"\n").removesuffix(b"\r") for line in sys.stdin.buffer)
        else:
            yield os.fsencode(key)


def _write_json(pieces: Iterable[list[tuple[str, list[int]]]], *, is_list: bool) -> None:
    """Write rows as they come, the same text as that of all other tables but several times as fast."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    quoted: Any = encode_basestring if is_utf8 else encode_basestring_ascii
    begin, between, end = ("[\n  ", ",\n  ", "\n]\n") if is_list else ("", "\n", "\n")
    written = False
    for piece in pieces:
        lines = between.join(f'{{"key": {quoted(key)}, "workers": {workers}}}' for key, workers in piece)
        sys.stdout.write((between if written else begin) + lines)
        written = True
    sys.stdout.write(end if written else "[]\n" if is_list else "")


def _write_csv(pieces: Iterable[list[tuple[str, list[int]]]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for piece in pieces:
        writer.writerows((key, " ".join(map(str, workers))) for key, workers in piece)


def _shown(workers: list[int], most: int) -> list[int] | str:
    """Write all workers in their order as a range."""
    return f"0..{most - 1}" if most > 2 and workers == list(range(most)) else workers
