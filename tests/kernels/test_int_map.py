"""The map from numbers to numbers against a dict."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.kernels.int_map import ABSENT, enlarged, get, make_int_map, put, remove

# Few keys, so that they come again, and keys that begin their search in the same slot of the smallest map.
KEYS = st.one_of(st.integers(0, 12), st.integers(0, 2**62))


def test_an_empty_map_has_nothing() -> None:
    table = make_int_map(1)
    assert get(table, 0) == ABSENT
    assert remove(table, 0) == 0
    assert len(table) == 2


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["put", "remove"]), KEYS, st.integers(0, 99)), max_size=60))
def test_it_does_what_a_dict_does(steps: list[tuple[str, int, int]]) -> None:
    table, known, capacity = make_int_map(4), dict[int, int](), 4
    for what, key, value in steps:
        if what == "remove":
            assert remove(table, key) == (known.pop(key, None) is not None)
        else:
            if key not in known and len(known) == capacity:
                capacity *= 2
                table = enlarged(table, capacity)
            assert put(table, key, value) == (key not in known)
            known[key] = value
        assert sorted((int(slot) - 1, int(found)) for slot, found in table if slot) == sorted(known.items())
        assert all(get(table, one) == found for one, found in known.items())
        assert get(table, key) == known.get(key, ABSENT)
