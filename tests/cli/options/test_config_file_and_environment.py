"""Options from flags, the environment and a TOML file: which wins, mistakes in them, and completion by the shell."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgroup.base import modules_by_name
from streamgroup.ingest.readers.options import OPTIONS
from streamgroup.synth.params_of_all_generators import PARAMS


def _row(found) -> dict[str, object]:
    assert found.exit_code == 0, found.stderr
    (row,) = json.loads(found.stdout)
    return row


FILE = """
workers = 4
seed = 3

[replay]
grouping = "kg"
hash_seed = 7
spread-ties = false

[ingest]
time-format = "s"

[ingest.csv]
ragged = true
time-format = "ms"

[synth.zipf]
keys = 10
"""


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(invoke, trace, tmp_path) -> None:
    file = tmp_path / "options.toml"
    file.write_text(FILE)
    command = ("replay", trace, "--json", "--quiet")
    row = _row(invoke(*command, "--config", file))
    assert (row["grouping"], row["workers"], row["seed"], row["hash_seed"], row["sources"]) == ("kg", 4, 3, 7, 5)
    row = _row(invoke(*command, "--config", file, STREAMGROUP_WORKERS="6", STREAMGROUP_SEED="0"))
    assert (row["workers"], row["seed"], row["hash_seed"]) == (6, 0, 7)
    row = _row(invoke(*command, "-n", "8", STREAMGROUP_CONFIG=str(file), STREAMGROUP_WORKERS="6"))
    assert (row["grouping"], row["workers"]) == ("kg", 8)


def test_the_nearest_table_wins(invoke, tmp_path) -> None:
    file = tmp_path / "options.toml"
    file.write_text(FILE)
    data = tmp_path / "raw.csv"
    data.write_text("timestamp,key\n1500,a\n2500,b,extra\n")
    found = invoke("ingest", "csv", data, "-o", "x", "--dry-run", "--json", "--config", file)
    rows = json.loads(found.stdout)["tuples"]
    assert [row["timestamp"] for row in rows] == ["1970-01-01T00:00:01.5Z", "1970-01-01T00:00:02.5Z"]
    made = invoke("synth", "zipf", "--tuples", "100", "-o", tmp_path / "t", "--json", "--config", file)
    assert json.loads(made.stdout)["keys"] <= 10


def test_flags_that_mean_nothing_to_a_reader_are_nowhere_but_refused(invoke, tmp_path) -> None:
    data, file = tmp_path / "raw.jsonl", tmp_path / "options.toml"
    data.write_text('{"time": 1, "key": "a"}\n')
    command = ("ingest", "jsonl", data, "-o", "x", "--dry-run")
    assert "--delimiter" not in invoke("ingest", "jsonl", "--help").stdout
    assert "--delimiter" in invoke("ingest", "csv", "--help").stdout
    found = invoke(*command, "--no-header")
    assert (found.exit_code, found.stderr.splitlines()[0]) == (2, "error: reader jsonl has no --header")
    file.write_text("delimiter = ';'\n[ingest]\nmultiline = true")
    assert invoke(*command, "--config", file, STREAMGROUP_DELIMITER=";").exit_code == 0
    file.write_text("[ingest.jsonl]\ndelimiter = ';'")
    assert "unknown key 'delimiter'" in invoke(*command, "--config", file).stderr


@pytest.mark.parametrize("name", modules_by_name.names(modules_by_name.READERS))
def test_a_reader_has_the_options_that_help_lists(name: str) -> None:
    reader = modules_by_name.load(modules_by_name.READERS, name, "reader").Reader
    assert OPTIONS[name.replace("-", "_")] is reader.Options


@pytest.mark.parametrize("name", modules_by_name.names(modules_by_name.GENERATORS))
def test_a_generator_has_the_parameters_that_help_lists(name: str) -> None:
    assert PARAMS[name.replace("-", "_")] is modules_by_name.load(modules_by_name.GENERATORS, name, "generator").Params


def test_of_json_and_format_the_stronger_source_wins(invoke, tmp_path) -> None:
    file = tmp_path / "options.toml"
    file.write_text("format = 'csv'")
    assert invoke("readers", "--config", file).stdout.startswith("reader,")
    assert invoke("readers", "--config", file, "--json").stdout.startswith("[")
    assert invoke("readers", "--config", file, STREAMGROUP_FORMAT="markdown").stdout.startswith("| reader")
    assert invoke("readers", "--format", "csv", STREAMGROUP_JSON="1").stdout.startswith("reader,")
    assert invoke("readers", "--format", "csv", "--json").exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sed = 1", "did you mean 'seed'?"),
        ("[reply]\nseed = 1", "did you mean 'replay'?"),
        ("[replay]\nhash-sed = 1", "[replay]: unknown key 'hash-sed'"),
        ("[replay]\nseed = [1, 2]", "seed: [1, 2] is not a text or a number"),
        ("[replay]\nlog = 'yes'", "log: 'yes' is not true or false"),
        ("[ingest.cvs]\nragged = true", "did you mean 'csv'?"),
        ("[ingest.csv]\nwords = 1", "unknown key 'words'"),
        ("[replay]\nworkers = 'many'", "(from "),
        ("seed = ", "not TOML"),
        ("config = 'other.toml'", "unknown key 'config'"),
    ],
)
def test_every_mistake_in_a_file_is_an_error_that_names_it(invoke, trace, tmp_path, text, said) -> None:
    file = tmp_path / "options.toml"
    file.write_text(text)
    found = invoke("replay", trace, "-g", "sg", "--config", file, *(() if "workers" in text else ("-n", "2")))
    assert found.exit_code == 2
    assert said in found.stderr
    assert str(file) in found.stderr


def test_a_file_that_is_not_there(invoke, trace, tmp_path) -> None:
    found = invoke("describe", trace, "--config", tmp_path / "none.toml")
    assert found.exit_code == 2
    assert "none.toml" in found.stderr


def test_a_bad_variable_is_named(invoke, trace) -> None:
    found = invoke("replay", trace, "-g", "sg", STREAMGROUP_WORKERS="many")
    assert found.exit_code == 2
    assert "STREAMGROUP_WORKERS" in found.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("streamgroup repl", "replay"),
        ("streamgroup replay x -g gr", "greedy_d\ngreedy_freq"),
        ("streamgroup groupings k", "kafka\nkafka_librdkafka\nkg"),
        ("streamgroup ingest wikib", "wikibench"),
        ("streamgroup synth z", "zipf"),
        ("streamgroup synth zipf --expo", "--exponent"),
        ("streamgroup ingest csv --ragg", "--ragged"),
        ("streamgroup replay --format js", "json\njsonl"),
    ],
)
def test_completion_knows_commands_members_and_flags(spawn, words, found) -> None:
    done = spawn(_STREAMGROUP_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
    assert done.stdout.strip() == found
    assert done.returncode == 0


def test_completion_can_be_shown() -> None:
    # The shell is found among the processes above; `true` keeps it from being replaced by its last command.
    command = f"'{sys.executable}' -m streamgroup --show-completion && true"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "_STREAMGROUP_COMPLETE" in shown.stdout


def test_common_flags_are_taken_before_and_after_the_command(
    invoke: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = invoke("groupings", "kg", "--json").stdout
    assert after.startswith("{")
    assert invoke("--json", "groupings", "kg").stdout == after
    assert invoke("--format", "json", "groupings", "kg").stdout == after
    # The one behind the command wins, and both over the environment and a file.
    assert invoke("--format", "csv", "groupings", "kg", "--json").stdout == after
    monkeypatch.setenv("STREAMGROUP_FORMAT", "csv")
    assert invoke("--json", "groupings", "kg").stdout == after
    monkeypatch.delenv("STREAMGROUP_FORMAT")
    file = tmp_path / "options.toml"
    file.write_text("format = 'json'\n")
    assert invoke("--config", file, "groupings", "kg").stdout == after
    assert invoke("--config", file, "--format", "csv", "groupings", "kg").stdout.startswith("grouping,")
    assert "no such" in invoke("--config", tmp_path / "none", "groupings").stderr.lower()
    asked = ("where", "a", "-g", "sg", "-n", "4")
    assert (invoke("--quiet", *asked).stderr, invoke(*asked, "--quiet").stderr) == ("", "")
    assert invoke(*asked).stderr
    for wrong in (["--json", "--format", "csv", "groupings"], ["--json", "report", "x", "-o", "y"]):
        done = invoke(*wrong)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "--format" in done.stderr


def test_a_crash_that_was_asked_for_is_told_of(invoke, trace) -> None:
    """Also where nothing was on the worker; without a crash, zero goes without saying."""
    command = ("replay", trace, "-g", "sg", "-n", 4, "--service", "1us")
    shown = [line.split() for line in invoke(*command, "--crash", "50%").stdout.splitlines()]
    assert ["lost", "0"] in shown
    assert ["redelivered", "0"] in shown
    names = {line.split()[0] for line in invoke(*command).stdout.splitlines()}
    assert not names & {"lost", "redelivered", "dropped"}


def test_a_short_list_of_factors_is_told_of(invoke, trace) -> None:
    command = ("replay", trace, "-g", "sg", "-n", 64, "--arrivals", "utilization=0.5", "--slowdown")
    assert "warning: --slowdown 2,1 repeats: 32 of 64 workers are slow\n" in invoke(*command, "2,1").stderr
    told = invoke(*command, "one:2", "--slowdown-at", "50%=1,1,3").stderr
    assert "repeats" in told
    assert "warning: --slowdown-at 50%=1,1,3 repeats: 21 of 64 workers are slow\n" in told
    assert "repeats" not in invoke(*command, "one:2").stderr
