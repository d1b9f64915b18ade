"""`synth` on the command line: lists, choices, costs, and what is said of a wrong value."""

import json

import pytest

from streamgroup.traces.checks.validate import validate
from streamgroup.traces.trace import open_trace


def test_execution_times_and_shares_as_lists(invoke, tmp_path) -> None:
    command = ("synth", "posg", "--values", "25,5,1", "--shares", "10,20,70", "--exponent", "0", "--keys", "100")
    found = invoke(*command, "-o", tmp_path / "t", "--json", "--quiet")
    assert found.exit_code == 0, found.stderr
    trace = open_trace(tmp_path / "t")
    assert validate(tmp_path / "t") == []
    # Uniform items: 0.1 x 25 + 0.2 x 5 + 0.7 ms, by which the arrivals go too.
    assert trace.manifest.mean_cost_us == pytest.approx(4200, rel=0.03)
    (batch,) = trace.batches(("timestamp", "cost"))
    assert set(batch.cost.tolist()) == {25_000.0, 5_000.0, 1_000.0}
    assert batch.timestamp[10] == 8_400
    assert trace.manifest.generator_parameters["values"] == [25, 5, 1]
    assert trace.manifest.generator_parameters["shares"] == [10, 20, 70]


def test_lists_from_a_file_and_from_the_environment(invoke, tmp_path) -> None:
    file = tmp_path / "options.toml"
    file.write_text('[synth.posg]\nvalues = "25,5,1"\ntuples = 50\n')
    for number, environment in enumerate(({}, {"STREAMGROUP_VALUES": "8"})):
        found = invoke("synth", "posg", "-o", tmp_path / str(number), "--quiet", "--config", file, **environment)
        assert found.exit_code == 0, found.stderr
        (batch,) = open_trace(tmp_path / str(number)).batches(("timestamp", "cost"))
        assert set(batch.cost.tolist()) <= ({8_000.0} if environment else {25_000.0, 5_000.0, 1_000.0})


@pytest.mark.parametrize(
    ("generator", "flags"),
    [
        ("evolving-zipf", ("--reading", "c", "--tuples", "1000", "--change", "0.5")),
        ("skewed", ("--share", "68%", "--half", "--tuples", "1000")),
        ("stand-in", ("--dataset", "wp", "--scale", "0.001")),
        ("bursty", ("--length", "7", "--tuples", "1000")),
        ("drift", ("--every", "10", "--tuples", "1000")),
        ("uniform", ("--keys", "5", "--tuples", "1000")),
    ],
)
def test_each_generator_makes_a_valid_trace(invoke, tmp_path, generator: str, flags: tuple[str, ...]) -> None:
    found = invoke("synth", generator, *flags, "-o", tmp_path / "t", "--json", "--quiet")
    assert found.exit_code == 0, found.stderr
    row = json.loads(found.stdout)
    assert row["tuples"] in (1000, 22_000)
    assert validate(tmp_path / "t") == []
    assert open_trace(tmp_path / "t").manifest.generator == generator


def test_choices_are_shown_and_a_wrong_one_is_named(invoke, tmp_path) -> None:
    told = invoke("synth", "evolving-zipf", "--help").stdout
    assert "--reading A|B|C|D|E" in told
    assert "--change NUMBER" in told
    assert "--values NUMBER,..." in invoke("synth", "posg", "--help").stdout
    found = invoke("synth", "evolving-zipf", "--reading", "Q", "-o", tmp_path / "t")
    assert found.exit_code == 2
    assert "reading" in found.stderr
    assert "'A', 'B', 'C', 'D' or 'E'" in found.stderr
    assert not (tmp_path / "t").exists()
