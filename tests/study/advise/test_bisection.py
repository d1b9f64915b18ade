"""The least number of workers: as counting up would find it, in few tries, and never beyond what is bearable."""

from hypothesis import given
from hypothesis import strategies as st

from streamgroup.study.advise.bisection import MOST, Search, least_enough, together

NUMBERS = st.integers(1, 6000)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_it_is_what_counting_up_finds(asked: int, first: int, least: int) -> None:
    least = min(least, first)
    tried: list[int] = []

    def tries(wanted: dict[str, int]) -> dict[str, bool]:
        tried.append(wanted["one"])
        return {"one": wanted["one"] >= first}

    found = together({"one": least_enough(asked, enough=asked >= first, least=least)}, tries)["one"]
    assert found == (first if asked >= first or first <= MOST else None)
    assert len(tried) == len(set(tried))
    assert len(tried) <= 26
    assert all(least <= number <= max(MOST, asked) for number in tried)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4))
def test_side_by_side_is_as_alone(given: list[tuple[int, int]]) -> None:
    firsts = {str(place): first for place, (_, first) in enumerate(given)}

    def searches() -> dict[str, Search]:
        return {
            str(place): least_enough(asked, enough=asked >= first, least=1)
            for place, (asked, first) in enumerate(given)
        }

    def tries(wanted: dict[str, int]) -> dict[str, bool]:
        return {name: number >= firsts[name] for name, number in wanted.items()}

    both = together(searches(), tries)
    assert list(both) == list(firsts)
    for name, search in searches().items():
        assert together({name: search}, tries)[name] == both[name]
