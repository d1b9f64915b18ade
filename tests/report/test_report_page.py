"""The page: whole, closed to the network, the same every time, and safe whatever keys and names hold."""

import json
import time
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.report import page as page_module
from streamgroup.report.findings import caveats, verdicts
from streamgroup.report.formatting import number, shown
from streamgroup.report.page import page
from streamgroup.report.render_chart import chart_names
from streamgroup.report.report_data import gather
from streamgroup.report.report_tables import side_by_side
from streamgroup.report.tables_in_page import PageData, as_script
from tests.report.made_up_runs import HOSTILE, make_run, make_runs

DOCS = Path(__file__).parents[2] / "docs"
_VOID = {"meta", "link", "img", "br"}


class Parsed(HTMLParser):
    """The elements of a page: what is open must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag == "td":
            self.cells.append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        if "td" in self.open:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("hostile")
    for at, name in enumerate(HOSTILE):
        make_run(place / f"r{at}", keys=HOSTILE, grouping=f"./{name}.py", trace=name)
    return page(gather([place]))


def test_hostile_names_stay_text(hostile: str) -> None:
    parsed = Parsed(hostile)
    assert parsed.open == []
    assert [tag for tag, _ in parsed.elements].count("script") == 3
    assert "b" not in {tag for tag, _ in parsed.elements}
    assert "alert(1)</script>" not in hostile
    assert not {"\0", "\u202e", "\u2028"} & set(hostile)
    assert "<script>alert(1)</script>" in parsed.cells
    assert len(hostile) < 4_000_000


def test_numbers_in_the_page_are_json(hostile: str) -> None:
    content = json.loads(Parsed(hostile).scripts[0])
    texts = {
        value
        for table in content["tables"].values()
        for column in table["columns"].values()
        for value in (column["values"] if isinstance(column, dict) else column)
        if isinstance(value, str)
    }
    assert {shown(name) for name in HOSTILE} <= texts
    assert max(map(len, texts)) < 400


def test_nothing_is_fetched(hostile: str) -> None:
    for tag, attributes in Parsed(hostile).elements:
        for name in ("src", "href", "action", "data", "srcset"):
            target = attributes.get(name)
            assert target is None or target.startswith(("data:", "#")), (tag, target)
    assert "default-src 'none'" in hostile


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    make_runs(tmp_path, ("kg", "pkg"), workers=(4, 8), seed=(0, 1))
    assert page(gather([tmp_path])) == page(gather([tmp_path]))


def test_tables_of_the_page_have_what_the_runs_have(tmp_path: Path) -> None:
    rows = make_runs(tmp_path, ("kg", "pkg"), seed=(0, 1))
    parsed = Parsed(page(gather([tmp_path])))
    content = json.loads(parsed.scripts[0])
    (button,) = [
        one for tag, one in parsed.elements if one.get("data-file") == "summary" and one["data-offer"] == "csv"
    ]
    table = content["tables"][button["data-table"]]
    assert table["rows"] == 4
    assert table["columns"]["imbalance"] == [row["imbalance"] for row in rows]
    assert "service" in table["columns"]


def test_means_stand_beside_their_maxima(tmp_path: Path) -> None:
    make_runs(tmp_path, ("kg", "pkg"), seed=(0, 1))
    columns = side_by_side(gather([tmp_path])).columns
    means = [name for name in columns if name.endswith("_mean") and name != "peak_to_mean"]
    assert means
    assert all(name.removesuffix("_mean") + "_max" in columns for name in means)


def test_without_seeds_to_average_figures_stand_alone(tmp_path: Path) -> None:
    make_runs(tmp_path, ("kg", "pkg"), workers=(8, 16))
    data = gather([tmp_path])
    columns = side_by_side(data).columns
    assert {"peak_to_mean", "latency_p99_ms", "throughput_limit_tps"} <= set(columns)
    assert not {"peak_to_mean_mean", "peak_to_mean_max", "latency_p99_ms_mean"} & set(columns)
    said = page(data)
    assert "Means over seeds" not in said
    assert "Figures of each grouping" in said
    make_runs(tmp_path / "more", ("kg", "pkg"), seed=(0, 1))
    several = page(gather([tmp_path / "more"]))
    assert "Means over seeds, each beside its maximum" in several
    assert ">peak to mean, mean</button>" in several
    assert ">peak to mean, max</button>" in several


def test_failed_cells_are_listed_with_their_errors(tmp_path: Path) -> None:
    make_run(tmp_path / "cells" / "a")
    (tmp_path / "sweep.json").write_text("{}")
    failed = {
        "status": "failed",
        "error": "posg: <b>no</b> drop",
        "grouping": "posg",
        "workers": 9,
        "trace": "t",
        "seed": 1,
    }
    done = {**failed, "status": "ok", "error": None}
    pl.DataFrame([failed, done], infer_schema_length=None).write_parquet(tmp_path / "summary.parquet")
    text = page(gather([tmp_path]))
    assert "<h3>1 failed</h3>" in text
    assert "posg on 9 workers, t, seed 1: posg: &lt;b&gt;no&lt;/b&gt; drop" in text
    (tmp_path / "summary.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="summary of a sweep"):
        gather([tmp_path])


def test_a_trace_that_is_gone_is_noted(tmp_path: Path) -> None:
    make_run(tmp_path / "r")
    assert "The trace t is not shown" in page(gather([tmp_path / "r"]))


def test_what_makes_figures_doubtful_is_said(tmp_path: Path) -> None:
    make_run(tmp_path / "a", offered_load=1.25, dropped=7)
    make_run(tmp_path / "b", seed=1, offered_load=0.001)
    told = " ".join(caveats(gather([tmp_path])))
    assert "1 of 2 runs were offered more than their workers can serve, up to 125 %" in told
    assert "1 of 2 runs were offered less than 1 %" in told
    assert "1 of 2 runs had tuples dropped, as a queue was full, up to 7 in one run" in told


def test_where_chooses_runs(tmp_path: Path) -> None:
    make_runs(tmp_path, ("kg", "pkg"), workers=(4, 8))
    chosen = gather([tmp_path], where="workers>4,grouping=pkg")
    assert chosen.runs.select("grouping", "workers").rows() == [("pkg", 8)]
    assert set(chosen.directories) == set(chosen.runs["run"])
    with pytest.raises(UsageError, match="no run is left"):
        gather([tmp_path], where="workers>99")


def test_runs_of_one_name_keep_apart(tmp_path: Path) -> None:
    make_run(tmp_path / "a" / "run")
    make_run(tmp_path / "b" / "run", seed=1)
    assert gather([tmp_path / "a", tmp_path / "b"]).runs["run"].to_list() == ["run", "run (2)"]


def test_a_damaged_table_says_which(tmp_path: Path) -> None:
    make_run(tmp_path / "r")
    (tmp_path / "r" / "loads.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"loads\.parquet cannot be read"):
        page(gather([tmp_path / "r"]))


def test_a_sweep_of_200_cells(tmp_path: Path) -> None:
    groupings = ("kg", "pkg", "sg", "fish", "d_choices")
    make_runs(tmp_path, groupings, workers=(8, 16, 32, 64, 128), trace=("t", "u"), seed=(0, 1, 2, 3))
    begun = time.process_time()
    text = page(gather([tmp_path]))
    assert len(text) < 5_000_000
    assert time.process_time() - begun < 20
    assert "200 runs of 5 groupings" in text


def test_tables_of_equal_content_are_stored_once() -> None:
    store = PageData()
    frame = pl.DataFrame({"a": ["x", "x", "y", "x", None], "b": [1.0, None, float("nan"), 2.0, 3.0]})
    assert store.add(frame) == store.add_rows(frame.to_dicts()) == "t0"
    assert store.tables["t0"]["columns"] == {
        "a": {"values": ["x", "y", None], "places": [0, 0, 1, 0, 2]},
        "b": [1.0, None, None, 2.0, 3.0],
    }


def test_json_in_a_script_cannot_end_it() -> None:
    text = as_script({"a": "</script><!--&\u2028\ud800"})
    assert not {"<", ">", "&"} & set(text)
    assert text.isascii()
    assert json.loads(text) == {"a": "</script><!--&\u2028\ud800"}


@pytest.mark.parametrize(
    ("text", "seen"),
    [("a", "a"), ("a\0b", "a\\x00b"), ("\u202ex", "\\u202ex"), ("\U0001f600", "\U0001f600"), ("\ud800", "\\ud800")],
)
def test_what_cannot_be_seen_is_escaped(text: str, seen: str) -> None:
    assert shown(text) == seen


def test_long_texts_are_cut_and_stay_apart() -> None:
    one, other = shown("x" * 1000 + "a"), shown("x" * 1000 + "b")
    assert one != other
    assert len(one) < 80
    assert "(1,001 characters" in one


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (3.0, "3"), (1234567, "1,234,567"), (0.12345, "0.123"), (1234.5, "1,234"), (0.00012, "1.20e-04")],
)
def test_numbers_for_people(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("name", chart_names())
def test_every_chart_is_explained(name: str) -> None:
    assert f"| `{name}` |" in (DOCS / "report.md").read_text()


def test_the_program_that_draws_is_kept_and_believed_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(page_module.vl_convert, "javascript_bundle", lambda text: made.append(text) or "é\r\n1;")
    assert {page_module._bundle() for _ in range(3)} == {"é\r\n1;"}
    assert len(made) == 1
    (kept,) = (tmp_path / "cache").iterdir()
    for damage in (kept.read_bytes()[:-1], b"", b"\xff\n\xff"):
        kept.write_bytes(damage)
        assert page_module._bundle() == "é\r\n1;"
    assert len(made) == 4
    # Nowhere to keep it: made each time.
    monkeypatch.setenv("STREAMGROUP_CACHE_DIR", str(kept / "below"))
    assert page_module._bundle() == "é\r\n1;"


UNMERGED = dict.fromkeys(("aggregator_utilization_max", "result_delay_ms_mean", "result_delay_ms_p99"))


def test_the_verdict_is_on_top_in_the_words_of_advise(tmp_path: Path) -> None:
    figures = {
        "kg": (4000.0, 5000.0, 3.0, 1.0, 100), "fish": (7.0, 17.0, 1.01, 1.3, 130), "sg": (5.0, 5.0, 1.0, 2.6, 260),
        "oracle": (1.0, 1.0, 1.0, 1.0, 100),
    }  # fmt: skip
    for name, (p99, most, peak, replication, replicas) in figures.items():
        make_run(
            tmp_path / name, grouping=name, workers=50, offered_load=0.8, latency_p99_ms=p99, latency_max_ms=most,
            peak_to_mean=peak, work_peak_to_mean=peak, replication_factor=replication, replicas=replicas,
            state_entries_max=9, **UNMERGED,
        )  # fmt: skip
    (line,) = verdicts(gather([tmp_path]))
    assert line == (
        "t: Take fish for 50 workers: the most loaded worker gets 1.01 times the mean, 80.8 % busy (mean 80 %); p99 7 "
        "ms, maximum 17 ms (kg: 4,000 and 5,000 ms, growing with the stream). kg: the most loaded worker gets 3.00 "
        "times the mean, 240 % of what it can do (mean 80 %); queues only grow, so latencies say nothing. It keeps 130 "
        "state entries, 1.3 a key (kg: 100), at most 9 on a worker (kg: 9); what split keys give has to be merged."
    )
    written = page(gather([tmp_path]))
    assert written.index("Which grouping to take") < written.index("What was compared") < written.index("chart-")
    (alone,) = verdicts(gather([tmp_path / "sg"]))
    assert alone.startswith("t: sg: the most loaded worker gets 1.00 times the mean, 80 % busy")


def test_there_is_a_verdict_for_each_number_of_workers(tmp_path: Path) -> None:
    for workers, best in ((25, "pkg"), (50, "fish")):
        for name in ("kg", "pkg", "fish"):
            make_run(
                tmp_path / f"{name}{workers}", grouping=name, workers=workers, offered_load=0.8, latency_max_ms=9.0,
                latency_p99_ms=7.0, peak_to_mean=1.0 if name == best else 3.0, work_peak_to_mean=None,
                replication_factor=1.3, replicas=130, state_entries_max=9, **UNMERGED,
            )  # fmt: skip
    first, second = verdicts(gather([tmp_path]))
    assert first.startswith("t: Take pkg for 25 workers: ")
    assert second.startswith("t: Take fish for 50 workers: ")


def test_a_verdict_says_what_merging_takes(tmp_path: Path) -> None:
    for name, delay in (("kg", 900.0), ("pkg", 40.0)):
        make_run(
            tmp_path / name, grouping=name, workers=50, offered_load=0.8, latency_p99_ms=7.0, latency_max_ms=9.0,
            peak_to_mean=1.0, work_peak_to_mean=1.0, replication_factor=1.3, replicas=130, state_entries_max=9,
            aggregator_utilization_max=0.5, result_delay_ms_mean=delay / 4, result_delay_ms_p99=delay,
        )  # fmt: skip
    (line,) = verdicts(gather([tmp_path]))
    assert line.startswith("t: Take pkg for 50 workers: ")
    assert line.endswith(
        "; its partial results keep the busiest aggregator 50 % busy, and a result is complete 10 ms after its "
        "window's end (p99 40 ms; kg: 225 ms, p99 900 ms)."
    )


def test_a_page_has_the_title_that_is_given(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    written = page(gather([tmp_path]), "Skew <of> a week")
    assert "<title>Skew &lt;of&gt; a week</title>" in written
    assert "<h1>Skew &lt;of&gt; a week</h1>" in written
