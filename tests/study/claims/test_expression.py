"""Expressions: arithmetic on series by hand, and what is refused."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from streamgroup.base.errors import UsageError
from streamgroup.study.claims.expression import check, evaluate, sweeps_in
from streamgroup.study.claims.expression_functions import FUNCTIONS
from streamgroup.study.claims.values_of_runs import Series, series_of
from streamgroup.study.claims.zipf_and_greedy_theory import (
    evolving_replicas,
    greedy_makespan,
    top_share,
    worst_greedy_ratio,
)


class Made:
    """A sweep `s` of two groupings on 10 and 20 workers, whose metric is by hand."""

    values: Mapping[tuple[str, int], float] = {("kg", 10): 4.0, ("kg", 20): 8.0, ("sg", 10): 2.0, ("sg", 20): 0.0}

    def read(self, sweep: str, name: str, given: Mapping[str, Any]) -> Any:
        assert (sweep, name) == ("s", "m")
        chosen = {
            key: value
            for key, value in self.values.items()
            if key[0] == given.get("grouping", key[0]) and key[1] == given.get("workers", key[1])
        }
        return series_of(("grouping", "workers"), chosen)

    def theory(self, given: Mapping[str, Any]) -> Any:
        assert given == {"name": "n", "n": [10, 20]}
        return series_of(("workers",), {(10,): 10, (20,): 20})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 ** 2", 19),
        ("-2 < 1 <= 1", True),
        ("not 1 > 2 and (False or 3 != 4)", True),
        ("s.m(grouping='kg', workers=10)", 4.0),
        ("max(s.m())", 8.0),
        ("mean(s.m(grouping='kg'))", 6.0),
        ("at(s.m(grouping='kg') / s.m(grouping='sg'), workers=10)", 2.0),
        # Over nothing.
        ("at(s.m(grouping='kg') / s.m(grouping='sg'), workers=20)", math.inf),
        # One grouping against all, number of workers by number of workers.
        ("all(s.m() >= s.m(grouping='sg'))", True),
        ("all(s.m(grouping='kg') >= 8)", False),
        ("growing(s.m(grouping='kg'), along='workers')", True),
        ("falling(s.m(grouping='sg'), along='workers')", True),
        ("growing(s.m(), along='workers')", False),
        ("level(s.m(grouping='kg'), along='workers', within=1)", True),
        ("level(s.m(grouping='kg'), along='workers', within=0.9)", False),
        ("smallest('workers', s.m(grouping='kg') > 5)", 20),
        ("smallest('workers', s.m(grouping='kg') > 50)", math.inf),
        ("peak(s.m(grouping='sg'), along='workers')", 10),
        ("max(s.m(), along='workers') == s.m(grouping='kg', workers=20)", None),
        ("at(max(s.m(), along='workers'), grouping='sg')", 2.0),
        ("max(s.m(grouping='kg') / theory('n', n=[10, 20]))", 0.4),
        ("sum(steps(0.1, 0.3, 0.1))", 0.6),
        ("max(a, 1, [2, 3])", 7),
        ("larger(a, 9) - abs(-1)", 8),
    ],
)
def test_values(text: str, expected: Any) -> None:
    found = evaluate(text, Made(), {"a": 7})
    if expected is None:
        assert isinstance(found, Series)
    else:
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "not an expression"),
        ("__import__('os')", "no function"),
        ("s.m().real", "Attribute|calls something else|not taken"),
        ("(lambda: 1)()", "calls something else"),
        ("s.m(**{})", "calls something else"),
        ("[x for x in a]", "not taken"),
        ("f'{a}'", "not taken"),
        ("1 // 2", "not taken"),
        ("b", "no number"),
        ("at(s.m(grouping='kg'), workers=11)", "no value has"),
        ("growing(s.m(grouping='kg'), along='d')", "do not differ"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(text, Made(), {"a": 7})


def test_series_of_other_columns_are_refused() -> None:
    one = Series(("workers",), {(1,): 1.0, (2,): 2.0})
    other = Series(("d",), {(1,): 1.0, (2,): 2.0})
    with pytest.raises(UsageError, match="one series differs in workers"):
        evaluate("a + b", Made(), {"a": one, "b": other})
    with pytest.raises(UsageError, match="no value to compare with"):
        evaluate("a + b", Made(), {"a": one, "b": Series(("workers",), {(1,): 1.0, (3,): 2.0})})


def test_names_are_checked_without_runs() -> None:
    assert sweeps_in("max(s.m() / t.m(), s.m())") == ["s", "t"]
    check("s.m(workers=n) + a", {"s": {}}, {"a", "n"})
    for text in ("t.m()", "a", "nope(1)"):
        with pytest.raises(UsageError, match="there is no"):
            check(text, {"s": {}}, set())


def test_functions_of_theory() -> None:
    assert top_share(0.0, 100, 0.08) == pytest.approx(0.08)
    # Without a change, two keys and many tuples: each is on all workers.
    assert evolving_replicas(0.0, 2, 1e6, 4, 0.8, "B") == pytest.approx(4.0)
    assert evolving_replicas(1.0, 1000, 1e4, 16, 1.0, "B") == pytest.approx(
        evolving_replicas(1.0, 1000, 1e4, 16, 0.5, "A")
    )
    # Twice one, then two: the classical worst case of two workers.
    assert greedy_makespan([1, 1, 2], 2) == 3
    assert worst_greedy_ratio(2, 3, 2) == 1.5
    assert set(FUNCTIONS) >= {"max", "min", "all"}
