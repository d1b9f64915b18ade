"""Runs before and after a change: which are matched, what changed, and gates on it."""

from pathlib import Path
from typing import Any

import pytest

from streamgroup.base.errors import DataError, UsageError
from streamgroup.metrics.metric_names import METRICS, TEXTS
from streamgroup.study.summary.compare_runs import compare
from tests.study.summary.test_summarize import write_run


def write(path: Path, *cells: dict[str, Any]) -> Path:
    for number, cell in enumerate(cells):
        write_run(path / f"r{number}", **cell)
    return path


def changes(old: Path, new: Path, metric: str) -> list[tuple[Any, ...]]:
    table = compare([old], [new], [metric]).table
    return table.select("grouping", "workers", "seed", "old", "new", "change").rows()


def test_cells_are_matched_by_their_options_in_any_order(tmp_path: Path) -> None:
    cells = [{"grouping": name, "workers": n, "seed": s} for name in ("pkg", "kg") for n in (4, 8) for s in (0, 1)]
    old = write(tmp_path / "old", *({**cell, "replicas": 100 + place} for place, cell in enumerate(cells)))
    again = [{**cell, "replicas": 110 + place} for place, cell in enumerate(cells)]
    new = write(tmp_path / "new", *reversed(again))
    found = changes(old, new, "replicas")
    assert len(found) == 8
    for name, workers, seed, before, after, change in found:
        place = cells.index({"grouping": name, "workers": workers, "seed": seed})
        assert (before, after) == (100 + place, 110 + place)
        assert change == pytest.approx(10 / (100 + place))


def test_cells_without_a_partner_are_named(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"workers": 4}, {"workers": 8}, {"workers": 16, "grouping": "pkg"})
    new = write(tmp_path / "new", {"workers": 8}, {"workers": 8, "service": "1ms"})
    found = compare([old], [new])
    assert found.only_old == ["t, sg on 4 workers", "t, pkg on 16 workers"]
    assert found.only_new == ["t, sg on 8 workers, service 1ms"]
    assert found.table.height == len(set(METRICS) - TEXTS)
    assert len(found.broken("replicas>+5%")) == 2
    assert all("only in OLD" in line for line in found.broken("replicas>+5%"))


def test_another_trace_of_the_same_name_is_no_partner(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"workers": 4}, {"workers": 8})
    new = write(tmp_path / "new", {"workers": 4}, {"workers": 8, "fingerprint": "a" * 64})
    found = compare([old], [new])
    assert found.only_old == ["t@ffffffff, sg on 8 workers"]
    assert found.only_new == ["t@aaaaaaaa, sg on 8 workers"]


def test_a_seed_that_means_nothing_is_no_difference(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"seed": 0}, {"seed": 0, "grouping": "pkg"})
    new = write(tmp_path / "new", {"seed": 3}, {"seed": 3, "hash_seed": 3, "grouping": "pkg"})
    found = compare([old], [new], ["replicas"])
    assert found.table["grouping"].to_list() == ["sg"]
    assert found.only_old == ["t, pkg on 16 workers, seed 0, hash_seed 0"]
    assert found.only_new == ["t, pkg on 16 workers, seed 3, hash_seed 3"]


def test_two_runs_are_compared_whatever_their_options(tmp_path: Path) -> None:
    old = write_run(tmp_path / "a", grouping="kg", replicas=10)
    new = write_run(tmp_path / "b", grouping="pkg", workers=4, replicas=15)
    found = compare([old], [new], ["replicas"])
    assert found.notes == ["grouping: kg in OLD, pkg in NEW", "workers: 16 in OLD, 4 in NEW"]
    (row,) = found.table.to_dicts()
    assert (row["grouping"], row["old"], row["new"], row["change"]) == ("pkg", 10, 15, 0.5)
    assert (found.only_old, found.only_new) == ([], [])


def test_copies_count_once(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"replicas": 5}, {"replicas": 7}, {"workers": 4})
    found = compare([old], [old], ["replicas"])
    assert found.notes[0] == "1 runs of OLD have the options of others there; the first of them counts"
    assert found.table["old"].to_list() == [5, 100]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [(2.0, 3.0, 0.5), (2.0, 1.0, -0.5), (-2.0, -1.0, 0.5), (0.0, 0.0, 0.0), (0.0, 1.0, None), (None, 1.0, None)],
)
def test_a_change_is_a_share_of_the_old_value(tmp_path: Path, old: Any, new: Any, change: float | None) -> None:
    before, after = write_run(tmp_path / "a", imbalance=old), write_run(tmp_path / "b", imbalance=new)
    assert compare([before], [after], ["imbalance"]).table["change"].to_list() == [change]


@pytest.mark.parametrize(
    ("old", "new", "condition", "verdict"),
    [
        (100.0, 104.0, "imbalance>+5%", None),
        (100.0, 106.0, "imbalance>+5%", "went from 100 to 106 (+6 %), limit +5 %"),
        (100.0, 105.0, "imbalance>=+5%", "went from 100 to 105 (+5 %), limit +5 %"),
        (100.0, 94.0, "imbalance<-5%", "went from 100 to 94 (-6 %), limit -5 %"),
        (100.0, 94.0, " imbalance <= -6 ", "went from 100 to 94 (-6), limit -6"),
        (100.0, 103.0, "imbalance>+2", "went from 100 to 103 (+3), limit +2"),
        (0.0, 0.0, "imbalance>+5%", None),
        (0.0, 0.1, "imbalance>+5%", "went from 0 to 0.1 (+inf %), limit +5 %"),
        (None, 1.0, "imbalance>+5%", "is null in OLD and 1 in NEW, which cannot be judged, limit +5 %"),
        (100.0, 106.0, "replicas>+1%,imbalance>+5%", "went from 100 to 106 (+6 %), limit +5 %"),
    ],
)
def test_a_gate_on_a_change(tmp_path: Path, old: Any, new: Any, condition: str, verdict: str | None) -> None:
    before, after = write_run(tmp_path / "a", imbalance=old), write_run(tmp_path / "b", imbalance=new)
    found = compare([before], [after]).broken(condition)
    assert found == ([] if verdict is None else [f"t, sg on 16 workers: imbalance {verdict}"])


def test_a_gate_on_a_metric_that_no_cell_has_cannot_be_judged(tmp_path: Path) -> None:
    lacking, having = {"workers": 4, "imbalance": None}, {"workers": 8, "imbalance": 1.0}
    old, new = write(tmp_path / "old", lacking), write(tmp_path / "new", lacking)
    for condition in ("imbalance>+5%", "imbalance<-3", "imbalance_error>3%"):
        reason = f"imbalance has no value in OLD and NEW, so {condition} cannot be judged"
        assert compare([old], [new]).broken(f"replicas>+1%, {condition}") == [reason]
    old, new = write(tmp_path / "old2", lacking, having), write(tmp_path / "new2", lacking, having)
    assert compare([old], [new]).broken("imbalance>+5%,imbalance_error>3%") == []


@pytest.mark.parametrize("condition", ["imbalance>5%", "imbalance", "imbalance=+5%", "imbalance>+x%", ""])
def test_a_gate_needs_the_sign_of_a_change(tmp_path: Path, condition: str) -> None:
    run = write_run(tmp_path / "a")
    with pytest.raises(UsageError, match="not a condition on a change"):
        compare([run], [run]).broken(condition)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    with pytest.raises(UsageError, match="no metric 'imbalanc'") as error:
        compare([run], [run], ["imbalanc"])
    assert "imbalance" in str(error.value.hint)
    with pytest.raises(UsageError, match="no metric 'x'"):
        compare([run], [run]).broken("x>+1")
    with pytest.raises(UsageError, match="does not exist"):
        compare([run], [tmp_path / "b"])
    (run / "summary.parquet").write_bytes(b"x")
    with pytest.raises(DataError, match="cannot be read"):
        compare([run], [run])
