"""`where`: keys from arguments and stdin, and the same workers as in a replay."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgroup.base.output_formats import render
from streamgroup.engines.flink import keyby_subtask, sql_subtask
from streamgroup.engines.kafka import kafka_partition
from streamgroup.engines.keys.typed_key_values import Int, Long
from streamgroup.engines.spark_sql import spark_sql_partition
from streamgroup.engines.storm import fields_task, pkg_tasks
from streamgroup.traces.hash_and_show_keys import hash_key
from streamgroup.traces.trace import open_trace

ODD = ["a", "b", 'quo"te', "com,ma", "line\tfeed", "\u00e9\u4e2d", "", "a"]


def test_candidates_are_those_of_the_trace_format(invoke: Any) -> None:
    """F_j worked out by hand from h1 and h2."""

    def mix64(x: int) -> int:
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = ((x ^ (x >> shift)) * factor) % 2**64
        return x ^ (x >> 31)

    wanted = []
    for key in ODD:
        h1, h2 = hash_key(key.encode())
        words = [mix64((h1 + j * (h2 | 1) + mix64(7)) % 2**64) for j in (1, 2, 3)]
        wanted.append({"key": key, "workers": [((word >> 32) * 11) >> 32 for word in words]})
    told = invoke("where", *ODD, "-g", "pkg:d=3", "-n", 11, "--hash-seed", 7, "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == wanted
    assert told.stdout == render(wanted, "json")
    assert told.stderr == ""
    lines = invoke("where", *ODD, "-g", "pkg:d=3", "-n", 11, "--hash-seed", 7, "--format", "jsonl").stdout
    assert lines == render(wanted, "jsonl")
    table = invoke("where", *ODD, "-g", "pkg:d=3", "-n", 11, "--hash-seed", 7, "--format", "csv").stdout
    assert table == render(wanted, "csv")


def test_a_replay_sends_keys_there(invoke: Any, trace: Path, tmp_path: Path) -> None:
    opened = open_trace(trace)
    names = opened.key_texts(range(opened.keys))
    for text in ("kg", "kg:ring=true", "pkg"):
        run = tmp_path / text.replace(":", "-")
        assert invoke("replay", trace, "-g", text, "-n", 8, "--log", "-o", run).exit_code == 0
        told = json.loads(invoke("where", *map(str, names), "-g", text, "-n", 8, "--json").stdout)
        log = pq.read_table(run / "assignments", columns=["key_id", "worker"])
        for key, worker in set(zip(log["key_id"].to_pylist(), log["worker"].to_pylist(), strict=True)):
            assert worker in told[key]["workers"], names[key]


def test_keys_come_from_stdin_at_their_place(spawn: Any) -> None:
    command = [sys.executable, "-m", "streamgroup", "where", "first", "-", b"bad\xff", "-g", "kg", "-n", "1", "--json"]
    told = subprocess.run(command, input=b"-\nwindows\r\n\n\xfe\nlast", capture_output=True, check=True)
    found = json.loads(told.stdout)
    assert [row["key"] for row in found] == ["first", "-", "windows", "", "\ufffd", "last", "bad\ufffd"]
    assert {tuple(row["workers"]) for row in found} == {(0,)}


def test_bytes_that_are_no_text_are_hashed_as_they_are() -> None:
    def ask(key: bytes) -> Any:
        command = [sys.executable, "-m", "streamgroup", "where", key, "-g", "kg", "-n", "60000", "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]

    one, other = ask(b"\xfe"), ask(b"\xff")
    assert one["key"] == other["key"]
    assert one["workers"] != other["workers"]


def test_more_keys_than_are_asked_for_at_once(invoke: Any) -> None:
    """Pieces make one list: no key is lost, none comes twice."""
    from typer.testing import CliRunner

    from streamgroup.cli.app import app
    from streamgroup.study.key_destinations import keys_at_once

    keys = [f"k{i}" for i in range(2 * keys_at_once(3) + 1)]
    for form, read in (("json", json.loads), ("jsonl", lambda text: [json.loads(line) for line in text.splitlines()])):
        told = CliRunner().invoke(app, ["where", "-", "-g", "kg", "-n", "3", "--format", form], input="\n".join(keys))
        assert [row["key"] for row in read(told.stdout)] == keys
    told = CliRunner().invoke(app, ["where", "-", "-g", "kg", "-n", "3", "--format", "csv"], input="\n".join(keys))
    assert [line.split(",")[0] for line in told.stdout.splitlines()] == ["key", *keys]
    nothing = CliRunner().invoke(app, ["where", "-", "-g", "kg", "-n", "3", "--json"], input="")
    assert (nothing.exit_code, json.loads(nothing.stdout)) == (0, [])


def test_what_may_go_elsewhere_is_said_once_on_stderr(invoke: Any) -> None:
    for text, said in (("d_choices", "hot"), ("sg", "any worker"), ("rivetti_dkg", "80000"), ("dstream", "hot")):
        told = invoke("where", "a", "b", "-g", text, "-n", 4, "--json")
        assert told.stderr.count("\n") == 1, text
        assert said in told.stderr, text
        assert invoke("where", "a", "-g", text, "-n", 4, "--quiet").stderr == ""
    assert "0..3" in invoke("where", "a", "-g", "sg", "-n", 4).stdout
    assert json.loads(invoke("where", "a", "-g", "sg", "-n", 4, "--json").stdout)[0]["workers"] == [0, 1, 2, 3]


def test_keys_of_a_type_go_where_the_scalar_rule_says(invoke: Any) -> None:
    for kind, value in (("string", "42"), ("int", Int(42)), ("long", Long(42)), ("bytes", b"42")):
        told = invoke("where", "42", "-g", "kafka", "-n", 100, "--key-type", kind, "--json")
        assert json.loads(told.stdout) == [{"key": "42", "workers": [kafka_partition(value, 100)]}]
    told = invoke("where", "--json", "-g", "storm_pkg:version=1", "-n", 8, "--key-type", "long", "--", "-7")
    assert json.loads(told.stdout) == [{"key": "-7", "workers": list(pkg_tasks(Long(-7), 8, version="1"))}]
    told = invoke("where", "42", "-g", "flink_keyby", "-n", 48, "--json")
    assert json.loads(told.stdout) == [{"key": "42", "workers": [keyby_subtask("42", 48)]}]
    assert "key_groups_per_worker_max 3, structural_peak_to_mean 1.125" in told.stderr
    wrong = invoke("where", "42", "4x", "-g", "kafka", "-n", 100, "--key-type", "int")
    assert (wrong.exit_code, wrong.stdout) == (4, "")
    assert "'4x' is no int" in wrong.stderr


def test_composite_keys_are_written_as_a_trace_holds_them(invoke: Any) -> None:
    rules = {"storm_fields": fields_task, "spark_sql": spark_sql_partition, "flink_sql": sql_subtask}
    for name, rule in rules.items():
        told = invoke(
            "where", '[ "de", 42 ]', '["\\u00e9",null]', "-g", name, "-n", 50, "--key-type", "string,long", "--json"
        )
        assert json.loads(told.stdout) == [
            {"key": '["de",42]', "workers": [rule(("de", Long(42)), 50)]},
            {"key": '["é",null]', "workers": [rule(("é", None), 50)]},
        ], told.stderr
    hashed = [invoke("where", key, "-g", "pkg", "-n", 999, *kind, "--json").stdout
              for key, kind in (('["de",42]', ()), ('["de", 42]', ("--key-type", "string,int")))]  # fmt: skip
    assert hashed[0] == hashed[1]
    for key, kind, said, code in (
        ("de", "string,long", "no JSON array of 2 parts", 4), ('["de"]', "string,long", "no JSON array of 2", 4),
        ('["de","x"]', "string,long", "not composed of string,long", 4),
        ('["de",1]', "string,float", "no such type", 2),
    ):  # fmt: skip
        wrong = invoke("where", key, "-g", "storm_fields", "-n", 3, "--key-type", kind)
        assert (wrong.exit_code, wrong.stdout) == (code, "")
        assert said in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (['["a",1]', "-g", "kafka", "-n", 3, "--key-type", "string,int"], "looks at one value"),
        (["a", "-g", "kg", "-n", 0], "-n 0"),
        (["a", "-g", "kg", "-n", 3, "--key-type", "float"], "--key-type 'float'"),
        (["1", "-g", "pulsar", "-n", 3, "--key-type", "int"], "no rule for keys of type int"),
        (["a", "-g", "flink_keyby:max_parallelism=4", "-n", 8], "max_parallelism=4"),
        (["a", "-g", "kg", "-n", 65537], "-n 65537"),
        (["a", "-g", "kg", "-n", 3, "--hash-seed", -1], "--hash-seed"),
        (["a", "-g", "kg", "-g", "pkg", "-n", 3], "one -g"),
        (["a", "-g", "kgg", "-n", 3], "no grouping 'kgg'"),
        (["-", "-", "-g", "kg", "-n", 3], "twice"),
        (["-g", "kg", "-n", 3], "KEY"),
        (["a", "-n", 3], "-g"),
    ],
)
def test_wrong_usage(invoke: Any, arguments: list[object], said: str) -> None:
    told = invoke("where", *arguments)
    assert told.exit_code == 2
    assert said in told.stderr
    assert told.stdout == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('oh')", "ValueError: oh"),
        ("return Destinations(context.candidates(2)[:, 0])", "must give integers"),
        ("return Destinations(context.candidates(2) + 5)", "from 0 to 2"),
        ("print('heard'); return Destinations(context.candidates(2)[:1])", "must give integers"),
    ],
)
def test_a_file_of_ones_own_is_blamed(invoke: Any, tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(f"""
from streamgroup.groupings.pkg import start
from streamgroup.groupings.protocol import Destinations, GroupingParams
class Params(GroupingParams):
    d: int = 2
    def destinations(self, context):
        {body}
""")
    told = invoke("where", "a", "b", "-g", tmp_path / "mine.py", "-n", 3, "--format", "jsonl")
    assert told.exit_code == 1
    assert said in told.stderr
    assert told.stdout == ""


@pytest.mark.parametrize("name", ["hazelcast", "hazelcast:partition_count=65536", "pulsar:mode=auto_split"])
def test_as_many_workers_as_there_may_be(invoke: Any, name: str) -> None:
    told = invoke("where", "a", "-g", name, "-n", 65_536, "--format", "csv")
    assert told.exit_code == 0, told.stderr
    # Whole numbers are told in full.
    assert "e+" not in told.stderr
