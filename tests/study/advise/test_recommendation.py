"""Which grouping is recommended, from rows that are made up."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgroup.study.advise.key_grouping_with_combiner import find_combiner
from streamgroup.study.advise.recommendation import Row, Targets, choose, frontier, meets


def row(order: int, p99: float, replication: float, load: float | None = 0.8, **more: Any) -> Row:
    same = dict.fromkeys(("latency_p99_ms", "latency_p99_low_ms", "latency_p99_high_ms"), p99)
    loads = dict.fromkeys(("worker_load_max", "worker_load_max_low", "worker_load_max_high"), load)
    peaks = dict.fromkeys(("peak_to_mean", "peak_to_mean_low", "peak_to_mean_high"), 1.0)
    given: dict[str, Any] = {
        **same, **loads, **peaks, "grouping": f"g{order}", "order": order, "latency_mean_ms": p99 / 2,
        "latency_max_ms": p99 * 2, "worker_load_mean": load, "replicas": 100, "replication_factor": replication,
        "state_entries_max": 10,
    }  # fmt: skip
    return Row(**{**given, **more})


# Few values, so that equals come up.
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 2.0, 5.0, 80.0]),
        st.sampled_from([1.0, 1.2, 2.0, 9.0]),
        st.sampled_from([None, 0.5, 1.0, 1.5]),
    ),
    min_size=1,
    max_size=8,
).map(lambda found: [row(place, *figures) for place, figures in enumerate(found)])
TARGETS = st.builds(Targets, st.sampled_from([None, 1.0, 4.0, 100.0]), st.sampled_from([None, 1.0, 1.5, 10.0]))


@given(ROWS, TARGETS)
def test_who_is_beaten_is_never_recommended(rows: list[Row], targets: Targets) -> None:
    chosen = choose(rows, targets)
    if any(one.keeps_up for one in rows):
        assert chosen.recommended in frontier(rows)
    else:
        assert chosen.rule == "throughput"


@given(ROWS, TARGETS)
def test_targets_hold_wherever_they_can(rows: list[Row], targets: Targets) -> None:
    chosen = choose(rows, targets)
    possible = any(meets(one, targets) for one in rows)
    assert chosen.met == (possible if targets.any else None)
    if targets.any and possible:
        assert meets(chosen.recommended, targets)


@given(ROWS, TARGETS, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[Row], targets: Targets, random: Any) -> None:
    mixed = rows.copy()
    random.shuffle(mixed)
    assert choose(mixed, targets) == choose(rows, targets)


@given(ROWS, TARGETS)
def test_the_runner_up_is_who_wins_without_the_winner(rows: list[Row], targets: Targets) -> None:
    chosen = choose(rows, targets)
    best = chosen.recommended
    # Who has the very same figures is no other choice.
    others = [one for one in rows if replace(one, grouping=best.grouping, order=best.order) != best]
    assert chosen.runner_up == (choose(others, targets).recommended if others else None)


def test_a_target_is_held_by_the_worst_segment() -> None:
    one = row(0, 5, 1, latency_p99_high_ms=11.0)
    assert meets(one, Targets(11))
    assert not meets(one, Targets(10))


@pytest.mark.parametrize(
    ("targets", "place", "rule"),
    [
        (Targets(), 1, "compromise"),
        (Targets(6), 1, "least state"),
        (Targets(4), 2, "least state"),
        (Targets(None, 1.5), 1, "least latency"),
        (Targets(None, 1), 0, "least latency"),
        (Targets(1), 2, "nearest"),
        (Targets(4, 1.5), 1, "nearest"),
    ],
)
def test_what_is_asked_for_decides(targets: Targets, place: int, rule: str) -> None:
    rows = [row(0, 400, 1), row(1, 5, 1.2), row(2, 3, 9)]
    chosen = choose(rows, targets)
    assert (chosen.recommended.order, chosen.rule) == (place, rule)


def test_state_is_spent_only_where_latency_is_ten_times_the_least() -> None:
    whole, split = row(0, 50, 1), row(1, 5, 1.2)
    assert choose([whole, split], Targets()).recommended is whole
    assert choose([replace(whole, latency_p99_high_ms=50.1), split], Targets()).recommended is split


def test_a_fullest_worker_with_a_fifth_more_is_not_balanced() -> None:
    full, split = row(0, 9, 1, load=0.96), row(1, 5, 1.2, load=0.8)
    assert choose([full, split], Targets()).recommended is full
    assert choose([replace(full, worker_load_max=0.97), split], Targets()).recommended is split


def test_equal_figures_are_one_choice() -> None:
    rows = [row(0, 5, 1.2), row(1, 5, 1.2), row(2, 90, 1)]
    chosen = choose(rows, Targets())
    assert (chosen.recommended, chosen.runner_up) == (rows[0], rows[2])
    assert choose(rows[:2], Targets()).runner_up is None


def test_where_nobody_keeps_up_latencies_do_not_count() -> None:
    rows = [row(0, 10, 1, load=9.0), row(1, 900, 1.2, load=1.3), row(2, 800, 9, load=1.25)]
    chosen = choose(rows, Targets(max_p99_ms=50))
    assert (chosen.recommended.order, chosen.rule, chosen.met) == (1, "throughput", False)
    assert choose(rows, Targets(max_replication=1)).recommended.order == 0


def test_who_does_not_keep_up_meets_nothing() -> None:
    assert not meets(row(0, 1, 1, load=1.01), Targets(50))
    assert meets(row(0, 1, 1, load=None), Targets(50))


@pytest.mark.parametrize(
    ("targets", "figures", "size"),
    [
        # The smallest that meets the target, else that keeps up, else the largest.
        (Targets(max_p99_ms=20), [(50.0, 0.9), (15.0, 0.8), (18.0, 0.7)], 300),
        (Targets(max_p99_ms=20), [(90.0, 1.1), (50.0, 0.9), (60.0, 0.8)], 300),
        (Targets(), [(90.0, 1.1), (50.0, 0.9), (10.0, 0.8)], 300),
        (Targets(), [(90.0, 1.3), (90.0, 1.2), (90.0, 1.1)], 1000),
    ],
)
def test_which_combiner_is_shown(targets: Targets, figures: list[tuple[float, float]], size: int) -> None:
    tried = [(size, row(0, p99, 1.0, load)) for size, (p99, load) in zip((100, 300, 1000), figures, strict=True)]
    found = find_combiner(tried, targets)
    assert found is not None
    assert found.size == size
    assert find_combiner([(100, None)], targets) is None


def test_with_aggregators_the_results_delay_and_their_load_count() -> None:
    # The first has the least latency, but its partial results are more than can be merged.
    split = row(0, 1.0, 2.0, aggregator_load_max=1.2, result_delay_mean_ms=500.0, result_delay_p99_ms=900.0)
    some = row(1, 5.0, 1.5, aggregator_load_max=0.9, result_delay_mean_ms=60.0, result_delay_p99_ms=101.0)
    kg = row(2, 400.0, 1.0, aggregator_load_max=0.7, result_delay_mean_ms=5.0, result_delay_p99_ms=10.0)
    assert [one.keeps_up for one in (split, some, kg)] == [False, True, True]
    # More than 10 times the least delay, though its latency is 1/80, and more than 1.2 times the least load.
    assert choose([split, some, kg], Targets()).recommended is kg
    # The target is of the latency.
    assert choose([split, some, kg], Targets(max_p99_ms=5)).recommended is some
    assert not meets(split, Targets(max_p99_ms=5))
    # Of those that cannot keep up the aggregator's load counts, where it is the larger.
    worse = replace(kg, aggregator_load_max=2.0, order=3)
    found = choose([split, worse], Targets())
    assert (found.recommended, found.rule) == (split, "throughput")
