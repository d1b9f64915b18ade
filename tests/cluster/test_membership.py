"""What the texts of --join, --leave and --crash mean, and which worker goes."""

from collections import Counter

import pytest

from streamgroup.base.errors import RunError, UsageError
from streamgroup.cluster.membership import Event, parse_membership, worker_of


def test_joins_come_before_leaves_before_crashes_each_in_the_order_given() -> None:
    events = parse_membership(
        join=["90%", "1s"], leave=["10", "5:random", "2ms:1"], crash=["50%:3"], tuples=100, workers=2
    )
    assert events == [
        Event("join", None, 90, None, False, 0),
        Event("join", 10**9, None, None, False, 1),
        Event("leave", None, 10, None, False, 2),
        Event("leave", None, 5, None, True, 3),
        Event("leave", 2_000_000, None, 1, False, 4),
        Event("crash", None, 50, 3, False, 5),
    ]
    assert parse_membership([], [], [], 1, 1) == []


@pytest.mark.parametrize(
    ("join", "leave", "crash", "words"),
    [
        (["soon"], [], [], "--join soon: 'soon' is not a time, a count or a share"),
        (["50%:0"], [], [], "--join 50%:0: a worker that joins has no name"),
        ([""], [], [], "--join : '' is not a time"),
        (["100"], [], [], "there is no tuple 100: the trace has only 100 tuples"),
        ([], ["100%"], [], "--leave 100%: there is no tuple 100"),
        ([], ["101%"], [], "not between 0% and 100%"),
        ([], ["50%:"], [], "--leave 50%:: '' is no worker"),
        ([], ["50%:-1"], [], "'-1' is no worker"),
        ([], [], ["50%:any"], "'any' is no worker"),
        ([], [], ["50%:1:2"], "'1:2' is no worker"),
        (["1"], [], ["50%:3"], "there is never a worker 3"),
        ([], ["1e30s:1"], [], "146 years"),
        (["1"] * 65535, [], [], "more than 65536 workers"),
    ],
)
def test_what_is_wrong_is_told_with_the_text(join: list[str], leave: list[str], crash: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_membership(join, leave, crash, 100, 2)
    assert words in caught.value.message


def test_the_hint_names_the_workers_there_can_be() -> None:
    with pytest.raises(UsageError) as caught:
        parse_membership(["1"], [], ["5:3"], 100, 2)
    assert caught.value.hint == "the workers are 0..2"


def test_the_worker_that_goes() -> None:
    def event(worker: int | None = None, *, random: bool = False, number: int = 0) -> Event:
        return Event("leave", 0, None, worker, random, number)

    live = [0, 2, 5]
    assert worker_of(event(), live, 0) == 5
    assert worker_of(event(2), live, 0) == 2
    with pytest.raises(RunError, match="worker 1 is not there"):
        worker_of(event(1), live, 0)
    with pytest.raises(RunError, match="no worker is left"):
        worker_of(event(random=True), [], 0)
    drawn = Counter(worker_of(event(random=True, number=k), live, seed=7) for k in range(600))
    assert set(drawn) == set(live)
    assert min(drawn.values()) > 150
    assert [worker_of(event(random=True, number=k), live, 7) for k in range(9)] != [
        worker_of(event(random=True, number=k), live, 8) for k in range(9)
    ]
