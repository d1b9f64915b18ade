"""Messages on their way, against a sorted list."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgroup.groupings.detectors.synopsis.messages_in_flight import (
    NEVER,
    doubled,
    make_messages,
    next_due,
    pop,
    push,
)


def test_equal_times_go_by_source_then_by_creation() -> None:
    messages = make_messages(6)
    assert next_due(messages) == NEVER
    for key, (due, source) in enumerate([(9, 0), (5, 2), (5, 1), (5, 2), (5, 65_534), (5, 1)]):
        push(messages, due, source, key, -key)
    assert next_due(messages) == 5
    assert [tuple(pop(messages)) for _ in range(6)] == [(key, -key) for key in (2, 5, 1, 3, 4, 0)]
    assert next_due(messages) == NEVER


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=80))
def test_against_a_sorted_list(steps: list[tuple[int, int] | None]) -> None:
    """None takes the next one; a queue that is full grows, and nothing on its way changes place."""
    messages = make_messages(1)
    waiting: list[tuple[int, int, int]] = []
    for number, step in enumerate([*steps, *[None] * len(steps)]):
        if step is not None:
            if messages.size[0] == len(messages.row):
                messages = doubled(messages)
            push(messages, step[0], step[1], number, 7 * number)
            waiting.append((*step, number))
        elif waiting:
            first = min(waiting)
            waiting.remove(first)
            assert next_due(messages) == first[0]
            assert tuple(pop(messages)) == (first[2], 7 * first[2])
        assert messages.size[0] == len(waiting)
    assert not waiting


def test_what_grows_keeps_what_it_had() -> None:
    messages = make_messages(2)
    push(messages, 3, 0, 1, 2)
    larger = doubled(messages)
    assert len(larger.row) == 4
    assert np.array_equal(larger.row[:2], messages.row)
    push(larger, 1, 0, 5, 6)
    assert tuple(pop(larger)) == (5, 6)
    assert tuple(pop(larger)) == (1, 2)
