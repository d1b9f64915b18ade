"""A capacity file: every key, whoever wins, and every mistake named with its line."""

import dataclasses
from pathlib import Path

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.replay.scenario.capacity_file import CapacityFile, with_capacity
from streamgroup.replay.scenario.options import ReplayOptions

PLAIN = ReplayOptions("kg", 4)
WHOLE = """
service = "2ms"
service_distribution = "lognormal:0.5"
slowdown = [1, 0.1, 2.50]
speed-jitter = "0.1:5_000"
queue_capacity = 7
when_full = "drop"
join = "50%"
leave = [100, "2s:random"]
crash = ["90%:1"]
redeliver = true

[slowdown_at]
"50%" = [0.9, 1]
"10" = "half:2"
20 = 3
"""


def written(tmp_path: Path, content: str) -> str:
    path = tmp_path / "cluster.toml"
    path.write_text(content)
    return str(path)


def test_every_key_fills_the_option_of_its_name(tmp_path: Path) -> None:
    given = dataclasses.replace(PLAIN, capacity=written(tmp_path, WHOLE))
    made = with_capacity(given)
    expected = dataclasses.replace(
        given,
        service="2ms",
        service_distribution="lognormal:0.5",
        slowdown="1,0.1,2.50",
        slowdown_at=("50%=0.9,1", "10=half:2", "20=3"),
        speed_jitter="0.1:5_000",
        queue_capacity=7,
        when_full="drop",
        join=("50%",),
        leave=("100", "2s:random"),
        crash=("90%:1",),
        redeliver=True,
    )
    assert vars(made) == vars(expected)
    # The file of filled options, and of copies of them, is not read again.
    Path(str(given.capacity)).unlink()
    assert with_capacity(made) is made
    assert with_capacity(dataclasses.replace(made, seed=1)).queue_capacity == 7
    names = {field.name for field in dataclasses.fields(ReplayOptions)}
    assert set(CapacityFile.model_fields) <= names


def test_without_a_file_nothing_changes() -> None:
    assert with_capacity(PLAIN) is PLAIN


def test_a_flag_wins_over_the_file(tmp_path: Path) -> None:
    flags = {
        "service": "1ms",
        "service_distribution": "exponential",
        "slowdown": "3",
        "slowdown_at": ("1=1",),
        "speed_jitter": "0:1",
        "queue_capacity": 1,
        "when_full": "block",
        "join": ("1%",),
        "leave": ("2%",),
        "crash": ("3%",),
    }
    given = dataclasses.replace(PLAIN, capacity=written(tmp_path, WHOLE), **flags)  # type: ignore[arg-type]
    assert vars(with_capacity(given)) == vars(dataclasses.replace(given, redeliver=True))


def test_a_zero_is_not_nothing(tmp_path: Path) -> None:
    given = dataclasses.replace(PLAIN, capacity=written(tmp_path, "queue_capacity = 7"), queue_capacity=0)
    assert with_capacity(given).queue_capacity == 0
    other = dataclasses.replace(PLAIN, capacity=written(tmp_path, "queue_capacity = 0"))
    with pytest.raises(UsageError, match="line 1: 0 is not between 1 and"):
        with_capacity(other)


def test_a_flag_for_the_cost_wins_over_the_other_kind_in_the_file(tmp_path: Path) -> None:
    by_key = dataclasses.replace(PLAIN, capacity=written(tmp_path, "key-cost = 'c.csv'"))
    assert with_capacity(by_key).key_cost == str(tmp_path / "c.csv")
    assert with_capacity(dataclasses.replace(by_key, service="1ms")).key_cost is None
    same = dataclasses.replace(PLAIN, capacity=written(tmp_path, "service = '1ms'"), key_cost="mine.csv")
    assert vars(with_capacity(same)) == vars(same)


def test_a_path_of_costs_is_from_the_files_folder_unless_it_is_absolute(tmp_path: Path) -> None:
    given = dataclasses.replace(PLAIN, capacity=written(tmp_path, "key_cost = '/data/c.csv'"))
    assert with_capacity(given).key_cost == "/data/c.csv"


def test_a_file_of_the_aggregators_grouping_is_from_the_files_folder(tmp_path: Path) -> None:
    given = dataclasses.replace(PLAIN, capacity=written(tmp_path, "aggregator_grouping = './mine.py:d=3'"))
    assert with_capacity(given).aggregator_grouping == f"{tmp_path}/mine.py:d=3"


def test_two_kinds_of_cost_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--service and --key-cost exclude each other"):
        with_capacity(dataclasses.replace(PLAIN, service="1ms", key_cost="c.csv"))
    given = dataclasses.replace(PLAIN, capacity=written(tmp_path, "service = '1ms'\nkey_cost = 'c.csv'"))
    with pytest.raises(UsageError, match="line 2: service and key_cost exclude each other"):
        with_capacity(given)


@pytest.mark.parametrize(
    ("content", "words", "hint"),
    [
        ("\nslowdwn = 2", "line 2: unknown key 'slowdwn'", "did you mean 'slowdown'?"),
        ("a = 1\n", "line 1: unknown key 'a'", "crash, join"),
        ("[workers]\nslowdown = 2", "line 1: unknown key 'workers'", "known:"),
        ("queue_capacity = 'many'", "line 1: queue_capacity: 'many' is not a whole number", None),
        ("queue_capacity = true", "line 1: queue_capacity: true is not a whole number", None),
        ("redeliver = 1", "line 1: redeliver: 1 is neither true nor false", None),
        ("slowdown = []", "line 1: slowdown: [] is not a text", None),
        ("slowdown = [1, [2]]", "slowdown: [1, [2]] is not a text", None),
        ("slowdown = [1, true]", "slowdown: [1, true] is not a text", None),
        ("\n\nslowdown = [1, 0]", "line 3: --slowdown: 0 is not a factor", None),
        ("slowdown = nan", "line 1: --slowdown: 'nan' is not a number", None),
        ("service = 5", "line 1: --service: '5' is not a duration", "write a number with ns"),
        ("service_distribution = 'normal'", "there is no kind 'normal'", "did you mean 'lognormal'?"),
        ("speed_jitter = 0.1", "line 1: --speed-jitter: '0.1' is not CV:EVERY", None),
        ("\nstate_cost = '0.5'", "line 2: --state-cost 0.5 does not say for how many entries", "write BETA/M"),
        ("memory_limit = '100'", "line 1: --memory-limit 100 has no factor", "write ENTRIES:FACTOR"),
        ("join = ['1', 'soon']", "line 1: --join: 'soon' is not a time", None),
        ("leave = ['x:1']", "line 1: --leave: 'x' is not a time", None),
        ("crash = [true]", "line 1: crash: true is not a text", None),
        ("slowdown_at = ['50%']", "line 1: --slowdown-at 50%: no start is given", None),
        ("[slowdown_at]\n'50%' = []", "line 1: slowdown_at: '50%' has no factors", None),
        ("slowdown_at = {'50%' = 'x'}", "--slowdown-at 50%=x: 'x' is not a number", None),
        ("when_full = 3", "line 1: when_full: 3 is not a text", None),
        ("\naggregators = 0", "line 2: 0 is not between 1 and 65536", None),
        ("aggregator_service = '1ms:x'", "line 1: --aggregator-service: there is no kind 'x'", "exponential"),
        ("aggregators = 'many'", "line 1: aggregators", None),
        ("slowdown = ", "not TOML: Invalid value", None),
        ("redeliver = true\nqueue_capacity = -5", "line 2: -5 is not between 1 and 2^40", "docs/cluster.md"),
        ("\nwhen_full = 'dorp'", "line 2: there is no kind 'dorp'", "block or drop"),
        ("slowdown_at = ['1s=2']\nslowdown-at = ['2s=2']", "line 2: slowdown-at is slowdown_at again", "keep one"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(
    tmp_path: Path, content: str, words: str, hint: str | None
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(UsageError) as caught:
        with_capacity(dataclasses.replace(PLAIN, capacity=path))
    assert caught.value.message.startswith(f"--capacity {path}")
    assert words in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "mark.toml"
    path.write_bytes(b"\xef\xbb\xbfslowdown = 2\n")
    assert with_capacity(dataclasses.replace(PLAIN, capacity=str(path))).slowdown == "2"


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        with_capacity(dataclasses.replace(PLAIN, capacity=str(tmp_path / "none.toml")))
    (tmp_path / "raw.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not TOML"):
        with_capacity(dataclasses.replace(PLAIN, capacity=str(tmp_path / "raw.toml")))
