"""Claims are looked at end to end: on a paper made by hand, and some of the real ones against the page."""

from pathlib import Path

import pytest

import streamgroup as sg
from streamgroup.base.progress import Silent
from streamgroup.report.claims.page import section
from streamgroup.study.claims import claim as claims
from streamgroup.study.claims.claim import Claim, Number, Paper
from streamgroup.study.claims.evidence_runs import EvidenceRuns
from streamgroup.study.claims.reproduce import Reproduction, look
from tests.docs.console_blocks import DOCS

# Theory, and one small sweep: seconds.
SUBSET = (
    "000-04", "000-13", "001-02", "001-05", "001-07", "001-11", "002-05", "002-06", "003-01", "003-05",
    "004-01", "004-02", "004-03",
)  # fmt: skip

PAPER = Paper.model_validate({
    "number": "000",
    "name": "made",
    "title": "Made",
    "sweeps": {
        "zipf": {
            "synth": ["zipf:tuples=2000,keys=50,exponent=1.0,2.0,seed=0..1"],
            "groupings": ["kg", "pkg:d=2,3"],
            "workers": "4",
            "arrivals": "utilization=0.8",
            "paper": {"workers": "4,8"},
        },
        "bad": {"synth": ["zipf:tuples=100"], "groupings": ["kg"], "workers": "4", "service": "0s"},
    },
    "claims": [],
})  # fmt: skip


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> EvidenceRuns:
    return EvidenceRuns(PAPER, "quick", tmp_path_factory.mktemp("claims"), 1, Silent())


def _claim(**more: object) -> Claim:
    return Claim.model_validate({"id": "000-01", "where": "here", "claim": "it is so", **more})


def _number(read: str, **more: object) -> Number:
    return Number.model_validate({"name": "x", "read": read, **more})


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"numbers": [_number("1", paper=1.05, within=0.05)]}, "holds"),
        ({"numbers": [_number("1", paper=1.06, within=0.05)]}, "does not hold"),
        ({"numbers": [_number("1", paper=1.06, within=0.05)], "shape": "1 > 0"}, "holds in shape"),
        ({"numbers": [_number("1", paper=2, judged=False)], "shape": "1 > 0"}, "holds in shape"),
        ({"numbers": [_number("1", paper=2, relation="<=")], "holds": "0 > 1"}, "does not hold"),
        ({"numbers": [_number("1", paper=2, relation=">=")], "holds": "0 > 1", "shape": "1 > 0"}, "holds in shape"),
        ({"holds": "1 > 0"}, "holds"),
        ({"untestable": "No cluster."}, "not testable here"),
    ],
)
def test_verdicts(more: dict[str, object], verdict: str, evidence: EvidenceRuns) -> None:
    assert look(PAPER, _claim(**more), evidence).verdict == verdict


def test_sweep_is_read(evidence: EvidenceRuns) -> None:
    imbalance = evidence.read("zipf", "imbalance", {"grouping": "kg"})
    assert imbalance.columns == ("exponent",)  # type: ignore[union-attr]
    by_d = evidence.read("zipf", "replicas", {"scheme": "pkg", "exponent": 1.0})
    assert by_d.columns == ("d",)  # type: ignore[union-attr]
    mean = evidence.read("zipf", "imbalance", {"grouping": "pkg", "exponent": 2.0})
    least, most = (
        evidence.read("zipf", "imbalance", {"grouping": "pkg", "exponent": 2.0, "replicates": how})
        for how in ("min", "max")
    )
    assert least < mean < most  # type: ignore[operator]
    tuples = evidence.read("zipf", "table", {"table": "workers", "column": "tuples", "how": "sum", "grouping": "kg"})
    assert set(tuples.values.values()) == {2000.0}  # type: ignore[union-attr]
    floor = evidence.read(
        "zipf", "statement", {"table": "pkg_floor", "column": "value", "grouping": "pkg", "exponent": 2.0}
    )
    assert floor == pytest.approx(0.06, abs=0.03)


def test_what_cannot_be_read_is_an_error_of_the_claim(evidence: EvidenceRuns) -> None:
    for read in ("zipf.nope()", "zipf.imbalance(workers=5)", "zipf.imbalance()", "zipf.imbalance(nope=5)", "none.m()"):
        found = look(PAPER, _claim(numbers=[_number(read)]), evidence)
        assert found.verdict is None
        assert found.error


def test_verdict_that_differs_from_the_one_looked_at_has_no_sentence(evidence: EvidenceRuns) -> None:
    numbers = [_number("1", paper=1)]
    same = look(PAPER, _claim(numbers=numbers, found="holds", why="So it is."), evidence)
    assert (same.why, same.is_changed) == ("So it is.", False)
    other = look(PAPER, _claim(numbers=numbers, found="does not hold", why="It is not."), evidence)
    assert (other.why, other.is_changed) == (None, True)


def _is_as_on_the_page(ids: tuple[str, ...], output: Path) -> Reproduction:
    made = sg.reproduce(ids, output=output)
    page = (DOCS / "claims.md").read_text()
    for finding in made.findings:
        assert not finding.is_changed, finding.claim.id
        assert section(finding) in page, finding.claim.id
    return made


@pytest.mark.slow
def test_a_claim_of_a_sweep_is_as_on_the_page(tmp_path: Path) -> None:
    assert len(_is_as_on_the_page(("000-29",), tmp_path / "claims").findings) == 1


def test_page_has_what_comes_out(tmp_path: Path) -> None:
    made = _is_as_on_the_page(SUBSET, tmp_path / "claims")
    assert (tmp_path / "claims" / "claims.md").is_file()
    assert {path.name for path in (tmp_path / "claims" / "claims").iterdir()} >= {"choices-fig4.svg"}
    again = sg.reproduce(["001-11"], output=tmp_path / "claims")
    assert [finding.to_json() for finding in again.findings] == [
        finding.to_json() for finding in made.findings if finding.claim.id == "001-11"
    ]


def test_names_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert len(claims.chosen([])) == len(claims.chosen(["all"])) == 100
    assert {claim.id[:3] for _, claim in claims.chosen(["choices"])} == {"001"}
    assert [claim.id for _, claim in claims.chosen(["004-02", "001-03"])] == ["001-03", "004-02"]
    with pytest.raises(sg.UsageError, match="no claim or paper"):
        claims.chosen(["001-99"])
