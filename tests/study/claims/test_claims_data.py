"""The data of the claims is sound: every expression is one, every sweep can be planned at both scales."""

import json
import re
from typing import get_args

import pytest

from streamgroup.replay.scenario.grouping_selection import select
from streamgroup.study.bounds.evaluate_statements import bounds
from streamgroup.study.claims.claim import VERDICTS, Claim, Paper, Scale, chosen, papers
from streamgroup.study.claims.expression import check, sweeps_in
from streamgroup.study.sweep.sweep_spec import make_spec, read_file
from streamgroup.study.sweep.value_lists import combinations_of
from streamgroup.synth.generate_trace import parameters

PAIRS = chosen(["all"])


def test_there_are_one_hundred() -> None:
    ids = [claim.id for _, claim in PAIRS]
    assert len(ids) == len(set(ids)) == 100
    assert [paper.number for paper in papers()] == ["000", "001", "002", "003", "004"]
    assert sum(claim.untestable is None for _, claim in PAIRS) >= 90


@pytest.mark.parametrize(("paper", "claim"), PAIRS, ids=[claim.id for _, claim in PAIRS])
def test_claim_is_sound(paper: Paper, claim: Claim) -> None:
    assert re.fullmatch(rf"{paper.number}-\d\d", claim.id)
    known: set[str] = set()
    for text in claim.expressions:
        check(text, paper.sweeps, known | set(claim.let))
    for name, text in claim.let.items():
        check(text, paper.sweeps, known)
        known.add(name)
        for grouping in re.findall(r"grouping='([^']+)'", text):
            assert select(grouping).text == grouping
    assert set(claim.figures) <= paper.figures.keys()
    if claim.untestable is not None:
        assert not claim.expressions
        return
    judged = any(number.paper is not None and number.judged for number in claim.numbers)
    assert judged or claim.holds or claim.shape, "nothing decides"
    assert claim.numbers, "nothing is measured"
    if claim.why is not None:
        assert claim.found in VERDICTS
        assert claim.why.endswith(".")


def test_statements_of_theory_exist() -> None:
    """Those that claims name are among those of `bounds`."""
    texts = [text for _, claim in PAIRS for text in (*claim.expressions, *claim.let.values())]
    named = {name for text in texts for name in re.findall(r"(?:statement|theory)\('(\w+)'", text)} - {"workers"}
    law = "zipf:z=1.2,keys=1000,tuples=100000"
    groupings = ("pkg", "sg", "d_choices", "w_choices", "dstream", "dynamic_kg", "posg")
    known = {said.name for one in groupings for said in bounds(law, 50, grouping=one, sources=5)}
    assert len(named) >= 15
    assert named <= known, named - known


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.name)
def test_nothing_is_idle(paper: Paper) -> None:
    read = {name for claim in paper.claims for text in claim.expressions for name in sweeps_in(text)}
    assert read == paper.sweeps.keys()
    assert {name for claim in paper.claims for name in claim.figures} == paper.figures.keys()
    for figure in paper.figures.values():
        check(figure.y, paper.sweeps, set())


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.name)
@pytest.mark.parametrize("scale", get_args(Scale))
def test_sweeps_can_be_planned(paper: Paper, scale: Scale, tmp_path: object) -> None:
    for name in paper.sweeps:
        given = paper.sweep(name, scale)
        path = tmp_path / f"{name}.toml"  # type: ignore[operator]
        path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items()))
        spec = make_spec(read_file(path))
        for text in spec.synth:
            for generator, values in combinations_of(text, "--synth"):
                parameters(generator, {key: value.replace(";", ",") for key, value in values.items()})
        for text in spec.groupings:
            select(text)
