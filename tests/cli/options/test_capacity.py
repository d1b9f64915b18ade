"""The capacity model on the command line: every flag reaches the run, from wherever it comes, and errors have codes."""

import json
from pathlib import Path
from typing import Any

import pytest

FLAGS = {
    "--service": "2ms",
    "--service-distribution": "lognormal:0.5",
    "--slowdown": "1,2",
    "--slowdown-at": "50%=half:3",
    "--speed-jitter": "0.1:500",
    "--queue-capacity": "1000000",
    "--when-full": "block",
    "--join": "30%",
    "--leave": "60%:random",
    "--crash": "90%:1",
    "--aggregate-every": "10%",
    "--warmup": "5%",
}
COMMAND = ("-g", "sg", "-n", "4", "--arrivals", "utilization=0.7", "--json", "--quiet")


def _row(found: Any) -> dict[str, Any]:
    assert found.exit_code == 0, found.stderr
    (row,) = json.loads(found.stdout)
    return row  # type: ignore[no-any-return]


def test_every_flag_reaches_the_run(invoke, trace) -> None:
    given = [piece for pair in FLAGS.items() for piece in pair]
    row = _row(invoke("replay", trace, *COMMAND, *given, "--redeliver"))
    for flag, value in FLAGS.items():
        name = flag.removeprefix("--").replace("-", "_")
        assert str(row[name]) == value, name
    assert row["redeliver"] is True
    assert row["queue_capacity"] == 1_000_000
    assert row["makespan_vs_lower_bound"] is None
    plain = _row(invoke("replay", trace, *COMMAND))
    assert plain["join"] is None
    assert plain["redeliver"] is False
    assert plain["latency_mean_ms"] != row["latency_mean_ms"]


def test_a_closed_loop_has_its_limit(invoke, trace) -> None:
    given = ("-g", "sg", "-n", "4", "--arrivals", "saturate", "--max-pending", "900", "--service", "2ms", "--json")
    row = _row(invoke("replay", trace, *given))
    assert (row["max_pending"], row["arrivals"]) == (900, "saturate")


def test_flags_that_repeat_come_from_everywhere(invoke, trace, tmp_path) -> None:
    command = ("replay", trace, *COMMAND)
    assert _row(invoke(*command, "--join", "10%", "--join", "20%"))["join"] == "10% 20%"
    assert _row(invoke(*command, STREAMGROUP_JOIN="10% 30%"))["join"] == "10% 30%"
    file = tmp_path / "options.toml"
    file.write_text("[replay]\njoin = ['40%', '50%']\nleave = '90%'\nqueue-capacity = 5000000\n")
    row = _row(invoke(*command, "--config", file))
    assert (row["join"], row["leave"], row["queue_capacity"]) == ("40% 50%", "90%", 5_000_000)
    assert _row(invoke(*command, "--config", file, "--join", "10%"))["join"] == "10%"


def test_a_capacity_file_is_the_same_as_its_flags(invoke, trace, tmp_path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text("key,cost\n" + "".join(f"k{i},{500 + i}\n" for i in range(500)))
    file = tmp_path / "cluster.toml"
    file.write_text(
        "key_cost = 'costs.csv'\nslowdown = [1, 2]\nqueue_capacity = 50\njoin = ['20%']\ncrash = '50%:0'\n"
        "redeliver = true\n[slowdown_at]\n'30%' = [1.5]\n'70%' = 1\n"
    )
    by_file = _row(invoke("replay", trace, *COMMAND, "--capacity", file))
    by_flags = _row(
        invoke(
            "replay", trace, *COMMAND, "--key-cost", costs, "--slowdown", "1,2", "--queue-capacity", "50",
            "--join", "20%", "--crash", "50%:0", "--redeliver", "--slowdown-at", "30%=1.5", "--slowdown-at", "70%=1",
        )
    )  # fmt: skip
    assert (by_file.pop("capacity"), by_flags.pop("capacity")) == (str(file), None)
    assert by_file == by_flags


def test_losses_are_shown_to_people_when_there_are_any(invoke, trace) -> None:
    command = ("replay", trace, "-g", "kg", "-n", "3", "--arrivals", "utilization=0.9", "--quiet")
    plain = invoke(*command).stdout
    assert "lost" not in plain
    crashed = invoke(*command, "--crash", "50%")
    shown = dict(line.split(None, 1) for line in crashed.stdout.splitlines()[2:])
    assert int(shown["lost"]) > 0
    based = invoke(*command, "--crash", "50%", "--baseline")
    assert "remapped_replicas" in based.stdout


def test_a_dry_run_tells_and_does_not_run(invoke, trace, tmp_path, monkeypatch) -> None:
    from streamgroup.study import replay_run

    monkeypatch.setattr(replay_run, "replay", lambda *_, **__: pytest.fail("replayed all the same"))
    command = ("replay", trace, "-g", "pkg", "-n", "4", "--join", "50%", "--leave", "60%:2", "-o", tmp_path / "run")
    found = invoke(*command, "--dry-run", "--log", "--baseline")
    assert found.exit_code == 0, found.stderr
    lines = [line.split(None, 1) for line in found.stdout.splitlines()[2:]]
    assert [value for name, value in lines if name == "membership"] == [
        "a worker joins before tuple 10000 (50 %)",
        "worker 2 leaves before tuple 12000 (60 %)",
    ]
    shown = dict(lines)
    assert shown["workers_ever"] == "5"
    assert {"offered_load", "windows_at_most", "memory_mb", "assumed_tuples_per_s", "time_s", "log_on_disk_mb"} <= set(
        shown
    )
    assert "queues" in shown
    row = _row(invoke(*command, "--dry-run", "--json"))
    assert isinstance(row["membership"], list)
    assert row["tuples"] == 20_000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry run"])
@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--join", "20000"], 2, "the trace has only 20000 tuples"),
        (["--join", "50%:3"], 2, "--join 50%:3"),
        (["--leave", "50%:4"], 2, "there is never a worker 4"),
        (["--crash", "soon"], 2, "--crash soon"),
        (["--slowdown", "1,x"], 2, "--slowdown: 'x' is not a number"),
        (["--slowdown-at", "50%"], 2, "--slowdown-at 50%"),
        (["--slowdown-at", "50%=2", "--slowdown-at", "1s=2"], 2, "some changes are at a time"),
        (["--speed-jitter", "0.1"], 2, "is not CV:EVERY"),
        (["--service-distribution", "gauss"], 2, "there is no kind 'gauss'"),
        (["--service", "1ms", "--key-cost", "GOOD"], 2, "exclude each other"),
        (["--key-cost", "nosuch.csv"], 2, "does not exist"),
        (["--key-cost", "SHORT"], 4, "no cost for key"),
        (["--key-cost", "ODD"], 4, "line 2"),
        (["--queue-capacity", "0"], 2, "--queue-capacity 0"),
        (["--queue-capacity", "many"], 2, "--queue-capacity"),
        (["--when-full", "drop"], 2, "--when-full needs"),
        (["--queue-capacity", "5", "--when-full", "spill"], 2, "no kind 'spill'"),
        (["--queue-capacity", "5", "--when-full", "drop", "--arrivals", "saturate"], 2, "saturate"),
        (["--arrivals", "saturate", "--speedup", "2"], 2, "--speedup"),
        (["--arrivals", "saturate=3"], 2, "saturate"),
        (["--redeliver"], 2, "--redeliver"),
        (["--max-pending", "0", "--arrivals", "saturate"], 2, "--max-pending 0"),
        (["--max-pending", "5"], 2, "--max-pending is for --arrivals saturate, not for --arrivals trace"),
        (["--warmup", "100%"], 4, "--warmup 100%"),
        (["--warmup", "soon"], 2, "--warmup"),
        (["--aggregate-every", "0"], 2, "--aggregate-every 0"),
        (["--capacity", "nosuch.toml"], 2, "nosuch.toml"),
        (["--capacity", "WRONG"], 2, "did you mean 'slowdown'?"),
        (["--baseline"], 2, "--baseline"),
        (["--service", "100d", "--slowdown", "2"], 4, "2^53"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_error_has_its_code(invoke, trace, tmp_path, args, code, said, dry) -> None:
    files = {
        "GOOD": ("c.csv", "key,cost\n" + "".join(f"k{i},1\n" for i in range(500))),
        "SHORT": ("short.csv", "key,cost\nk0,1\n"),
        "ODD": ("odd.csv", "key,cost\nk0,fast\n"),
        "WRONG": ("wrong.toml", "slowdwn = 2\n"),
    }
    places: dict[str, Path] = {}
    for name, (file, content) in files.items():
        places[name] = tmp_path / file
        places[name].write_text(content)
    found = invoke("replay", trace, "-g", "kg", "-n", "4", *(places.get(arg, arg) for arg in args), *dry)
    assert found.exit_code == code, found.stderr
    assert said in found.stderr
    assert found.stdout == ""
    lines = found.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) <= 2


def test_a_worker_that_is_not_there_any_more_fails_the_run(invoke, trace) -> None:
    command = ("replay", trace, "-g", "sg", "-n", "2")
    gone = invoke(*command, "--leave", "20%:1", "--leave", "30%:1")
    assert gone.exit_code == 1
    assert "worker 1 is not there" in gone.stderr
    empty = invoke(*command, "--leave", "20%", "--crash", "30%")
    assert empty.exit_code == 1
    assert "no worker" in empty.stderr
