"""DStream in the naive twin: worked examples, traces by hand, properties."""

from itertools import product
from math import exp

import pytest

from tests.naive.cases_by_hand import MS, at_ms
from tests.naive.detectors.synopsis import (
    BloomFilter,
    ExactFilter,
    Predictor,
    Synopsis,
    Vector,
    heads_before_tail,
)
from tests.naive.groupings.dstream import DStream
from tests.naive.groupings.simple_groupings import Setting, WorkersChange
from tests.naive.kernels.hashes_and_draws import word
from tests.naive.replay.options import Change
from tests.naive.replay.simulate import simulate
from tests.naive.worked_examples import example

NEVER = 2.0**-60


def heads(most: int) -> dict[int, float]:
    """How probable each number of heads is: one word for each place of the first tail, and the word without."""
    found = dict.fromkeys(range(most + 1), 0.0)
    for place in range(most):
        found[heads_before_tail(1 << place, most)] += 2.0 ** -(place + 1)
    found[heads_before_tail(0, most)] += 2.0**-most
    return found


def bits_of_reports(report: str = "above", bit: str = "offset", r: int = 6, l: int = 4) -> dict[int, float]:  # noqa: E741
    predictor = DStream(Setting(1), r=r, l=l, report=report, bit=bit).detector
    shares = heads(predictor.l + predictor.r)
    return {t - predictor.offset: share for t, share in shares.items() if t >= predictor.first_reported}


def test_ds_01_coins() -> None:
    given, expected = example("DS-01")
    r, most = given["r"], given["r"] + given["l"]
    for low in range(1 << 10):
        zeros = next((j for j in range(10) if low >> j & 1), 10)
        assert heads_before_tail(low | 1 << 63, most) == zeros
    bits = bits_of_reports(r=r, l=given["l"])
    assert sum(bits.values()) == expected["P_report_t_gt_r"]
    assert sum(bits_of_reports("from", r=r, l=given["l"]).values()) == expected["P_t_ge_r"]
    assert {str(b): share / sum(bits.values()) for b, share in bits.items()} == expected[
        "bit_probabilities_given_report"
    ]
    assert list(bits_of_reports("above", "absolute", 6, 4)) == [7, 8, 9, 10]
    assert list(bits_of_reports("from", "absolute", 6, 4)) == [6, 7, 8, 9, 10]
    assert list(bits_of_reports("from", "offset", 6, 4)) == [0, 1, 2, 3, 4]


def test_ds_02_at_most_one_report() -> None:
    given, expected = example("DS-02")
    r = given["r"]
    q = sum(bits_of_reports("from", r=r, l=4).values())
    for c, percent in zip(given["c"], expected["values_pct"], strict=True):
        mean = 2.0 ** (c - r)
        assert round(100 * (1 + mean) * exp(-mean), 2) == percent
        count = 2**c
        none_or_one = (1 - q) ** count + count * q * (1 - q) ** (count - 1)
        assert 100 * none_or_one == pytest.approx(percent, abs=0.03)


def test_ds_04_two_bits() -> None:
    given, expected = example("DS-04")
    (r,) = given["r"]
    bits = bits_of_reports(r=r, l=16)
    silent = 1 - sum(bits.values())
    for count in given["N"]:
        one = sum((silent + share) ** count - silent**count for share in bits.values())
        assert round(1 - silent**count - one, 6) == expected[f"r={r},N={count}"]
    # the same of the twin itself: keys one after another, no decline
    count, keys = 64, 400
    grouping = DStream(Setting(2, 1), p=NEVER, filter="exact")
    for key in range(keys):
        for _ in range(count):
            grouping.choose(0, b"%d" % key, 0)
    grouping.tick(0)
    hot = len(grouping.detector.filter)
    share = expected[f"r={r},N={count}"]
    assert hot / keys == pytest.approx(share, abs=3 * (share / keys) ** 0.5)


def test_ds_05_false_positives() -> None:
    given, expected = example("DS-05")
    hashes, others = given["hashes"], [b"o%d" % i for i in range(500)]
    for counters, keys in product(given["counters"], given["keys"]):
        formula = (1 - (1 - 1 / counters) ** (keys * hashes)) ** hashes
        assert formula == pytest.approx(expected[str(counters)][str(keys)], abs=6e-6)
        found = 0
        for turn in range(10):
            bloom = BloomFilter(counters, hashes)
            for i in range(keys):
                bloom.add(b"%d-%d" % (turn, i))
            found += sum(other in bloom for other in others)
        # sets of keys differ more than others within a set
        assert found / 5_000 == pytest.approx(formula, abs=0.07 if counters == 16 else 0.001)


def test_ds_06_eviction() -> None:
    given, expected = example("DS-06")
    for bit in given["bits"]:
        turns, updates = 200 // (bit + 1) + 20, 0
        for turn in range(turns):
            synopsis = Synopsis(given["p"], 2, "bernoulli", seed=turn)
            synopsis.entries = [Vector(b"a", 1 << bit)]
            while synopsis.entries:
                synopsis.forget()
                updates += 1
        mean = expected[str(bit)]
        assert updates / turns == pytest.approx(mean, abs=3 * mean / (turns * (bit + 1)) ** 0.5)


def test_delays_of_reports_and_broadcasts() -> None:
    """Every head is a report and a report is enough: hot from the report + 3 + 4 on. One key, two sources."""
    tuples = [(i * 1000, b"a", None) for i in range(12)]
    setting = Setting(3, 2)
    grouping = DStream(setting, r=0, zeta=1, p=NEVER, coin_delay=3 * MS, broadcast_delay="4ms", filter="exact")
    first = min(i for i in range(12) if word(0, f"dstream:coin:{i % 2}", i // 2) % 2 == 0)
    run = simulate(tuples, grouping, workers=3, sources=2)
    hot = [c.allowed for c in run.choices]
    assert hot == [3 if i >= first + 7 else 0 for i in range(12)]
    cold = grouping.candidate(b"a", 1)
    pointer = [0, 1]
    for i, record in enumerate(run.records):
        if hot[i]:
            assert record.worker == pointer[i % 2]
            pointer[i % 2] = (pointer[i % 2] + 1) % 3
        else:
            assert record.worker == cold
    heads_seen = sum(word(0, f"dstream:coin:{i % 2}", i // 2) % 2 == 0 for i in range(12))
    assert grouping.control_messages == 12 + heads_seen + 2
    assert grouping.control_bytes == 12 * 8 + heads_seen * 16 + 2 * 16
    assert (grouping.state_entries(0), grouping.state_entries(), grouping.detector_entries()) == (1, 1, 1)


def test_a_report_without_delay_counts_from_the_next_tuple() -> None:
    grouping = DStream(Setting(2, 1), r=0, zeta=1, p=NEVER)
    key = b"a"
    now = next(i for i in range(64) if word(0, "dstream:coin:0", i) % 2 == 0)
    for i in range(now + 2):
        grouping.tick(5)
        grouping.choose(0, key, 5)
        assert grouping.allowed == (2 if i > now else 0)


def test_reports_of_one_instant_by_source() -> None:
    grouping = DStream(Setting(2, 3), r=0, zeta=9, coin_delay=1, p=NEVER)
    keys = []
    for source in (2, 0, 1, 0):
        while True:
            made = len(grouping.detector.reports)
            grouping.choose(source, b"%d-%d" % (source, len(keys)), 0)
            if len(grouping.detector.reports) > made:
                keys.append(b"%d-%d" % (source, len(keys)))
                break
    grouping.tick(0)
    assert grouping.detector_entries() == 0
    grouping.tick(1)
    assert [e.key for e in grouping.detector.synopsis.entries] == [keys[1], keys[3], keys[2], keys[0]]


def test_vectors() -> None:
    """p = 1: each report shifts all. b's own bit 0 leaves at once; a is announced once and told to be gone."""
    synopsis = Synopsis(1.0, 2, "bernoulli", 0)
    assert synopsis.report(b"a", 3) == []
    assert synopsis.report(b"a", 3) == [("append", b"a")]
    assert [(e.key, e.bits, e.announced) for e in synopsis.entries] == [(b"a", 0b110, True)]
    assert synopsis.report(b"b", 0) == []
    assert [(e.key, e.bits) for e in synopsis.entries] == [(b"a", 0b11)]
    assert synopsis.report(b"a", 1) == []
    assert synopsis.report(b"c", 1) == [("delete", b"a")]
    assert [(e.key, e.bits) for e in synopsis.entries] == [(b"c", 1)]


def test_a_key_may_be_appended_and_deleted_by_one_report() -> None:
    synopsis = Synopsis(1.0, 1, "bernoulli", 0)
    assert synopsis.report(b"a", 0) == [("append", b"a"), ("delete", b"a")]
    assert synopsis.entries == []


def test_signals_as_in_the_code() -> None:
    """p = 1, as above. Each report of a hot key is told, and b, never hot, is told to be gone; c is hot when at 2."""
    synopsis = Synopsis(1.0, 2, "bernoulli", 0, "code")
    assert synopsis.report(b"a", 3) == []
    assert synopsis.report(b"a", 3) == [("append", b"a")]
    assert synopsis.report(b"b", 0) == [("delete", b"b")]
    # a has 11 and is told again; then 10, and with 1 more bit again
    assert synopsis.report(b"a", 2) == [("append", b"a")]
    assert [(e.key, e.bits, e.announced) for e in synopsis.entries] == [(b"a", 0b11, True)]
    assert synopsis.report(b"c", 1) == []
    assert synopsis.report(b"c", 3) == [("append", b"c"), ("delete", b"a")]
    # a key that once was hot and has one bit is not told
    synopsis.entries = [Vector(b"d", 0b100, announced=True)]
    assert synopsis.report(b"d", 2) == []


@pytest.mark.parametrize("kind", ["bloom", "exact"])
def test_the_code_adds_who_is_absent_and_deletes_members(kind: str) -> None:
    predictor = DStream(Setting(2, 1), filter=kind, counters=8, signals="code").detector
    twice, once, stranger = b"a", b"b", next(b"%d" % i for i in range(99) if shares_some(b"%d" % i, b"a", b"b"))
    predictor.broadcasts = [(0, i, "append", key) for i, key in enumerate([twice, twice, once])]
    predictor.broadcasts += [(1, 3, "delete", stranger), (2, 4, "delete", once), (2, 5, "delete", twice)]
    predictor.tick(0)
    before = held(predictor)
    fresh = DStream(Setting(2, 1), filter=kind, counters=8).detector
    fresh.broadcasts = [(0, i, "append", key) for i, key in enumerate([twice, once])]
    fresh.tick(0)
    assert before == held(fresh)
    predictor.tick(1)
    assert held(predictor) == before
    predictor.tick(2)
    assert not any(key in predictor.filter for key in (twice, once))
    assert held(predictor) in ([0] * 8, set())


def held(predictor: Predictor) -> list[int] | set[bytes | None]:
    kept = predictor.filter
    return list(kept.counters) if isinstance(kept, BloomFilter) else kept.keys.copy()


def test_the_code_leaves_out_whom_it_takes_for_a_member() -> None:
    """A false positive is not added; when it leaves, it takes counters of the members away."""
    predictor = DStream(Setting(2, 1), counters=8, signals="code").detector
    others = [b"a", b"b", b"c"]
    predictor.broadcasts = [(0, i, "append", key) for i, key in enumerate(others)]
    predictor.tick(0)
    before = held(predictor)
    false = next(b"%d" % i for i in range(999) if b"%d" % i in predictor.filter)
    predictor.broadcasts = [(1, 9, "append", false)]
    predictor.tick(1)
    assert held(predictor) == before
    predictor.broadcasts = [(2, 10, "delete", false)]
    predictor.tick(2)
    assert isinstance(predictor.filter, BloomFilter)
    assert sum(predictor.filter.counters) == sum(before) - 4


def test_the_code_tosses_a_coin_l_times_at_most() -> None:
    """A run of more than l is one of l: with r = 1 and l = 3 the lengths are 2 and 3, and 3 is as probable as 2."""
    predictor = DStream(Setting(2, 1), r=1, l=3, signals="code", coin_delay=1).detector
    for _ in range(4000):
        predictor.detect(0, b"a", 0)
    lengths = [report[4] for report in predictor.reports]
    assert set(lengths) == {2, 3}
    assert lengths.count(3) / 4000 == pytest.approx(1 / 8, rel=0.15)
    assert DStream(Setting(2, 1), r=1, l=3).detector.most_heads == 4


def test_a_delete_that_is_told_once_is_for_any_key() -> None:
    """Without the rule above, the counters that a key shares with members go down."""
    stranger = next(b"%d" % i for i in range(99) if shares_some(b"%d" % i, b"a", b"b"))
    grouping = DStream(Setting(2, 1), counters=8)
    grouping.detector.broadcasts = [(0, 0, "append", b"a"), (0, 1, "append", b"b"), (1, 2, "delete", stranger)]
    grouping.tick(1)
    assert isinstance(grouping.detector.filter, BloomFilter)
    assert sum(grouping.detector.filter.counters) < 8


def shares_some(key: bytes, *others: bytes) -> bool:
    """Whether a key is no member of a filter of others, but has some of their counters."""
    bloom = BloomFilter(8, 4)
    for other in others:
        bloom.add(other)
    return key not in bloom and any(bloom.counters[place] for place in bloom.places(key))


def test_drawn_decline_shifts_as_many_as_said() -> None:
    for size, p, least in ((10, 0.25, 2), (8, 0.5, 4), (3, 1.0, 3), (5, 0.1, 0)):
        counts = []
        places = [0] * size
        for seed in range(300):
            synopsis = Synopsis(p, 2, "drawn", seed)
            synopsis.entries = [Vector(b"%d" % i, 1) for i in range(size)]
            shifts = synopsis.shifting()
            assert synopsis.drawn == size + 1
            counts.append(sum(shifts))
            places = [a + b for a, b in zip(places, shifts, strict=True)]
        assert set(counts) <= {least, least + 1}
        assert sum(counts) / 300 == pytest.approx(p * size, abs=0.1)
        assert all(count / 300 == pytest.approx(p, abs=0.1) for count in places)


def test_bloom_counters() -> None:
    bloom = BloomFilter(16, 4)
    keys = [b"%d" % i for i in range(3)]
    for key in keys:
        bloom.add(key)
    assert sum(bloom.counters) == 12
    assert all(key in bloom for key in keys)
    for key in keys:
        bloom.remove(key)
    assert bloom.counters == [0] * 16
    for _ in range(20):
        bloom.add(b"a")
    full = set(bloom.places(b"a"))
    assert {bloom.counters[place] for place in full} == {15}
    for _ in range(20):
        bloom.remove(b"a")
    assert b"a" in bloom
    exact = ExactFilter()
    exact.add(b"a")
    exact.remove(b"b")
    assert (b"a" in exact, len(exact)) == (True, 1)


def test_the_filter_holds_what_was_announced() -> None:
    """After the delays: appends minus deletes are the announced entries, and what is left of the counters is theirs."""
    grouping = DStream(Setting(4, 2), r=1, l=6, p=0.05, filter="bloom")
    other = DStream(Setting(4, 2), r=1, l=6, p=0.05, filter="exact")
    for i in range(4000):
        key = b"%d" % (i * i % 37)
        for twin in (grouping, other):
            twin.tick(i)
            twin.choose(i % 2, key, i)
    grouping.tick(4000)
    other.tick(4000)
    announced = {e.key for e in grouping.detector.synopsis.entries if e.announced}
    assert announced == other.detector.filter.keys
    assert announced
    fresh = BloomFilter(1024, 4)
    for key in announced:
        fresh.add(key)
    assert grouping.detector.filter.counters == fresh.counters
    assert all(twin.control_messages > 4000 + 4000 / 8 for twin in (grouping, other))


@pytest.mark.parametrize(("r", "report", "rate"), [(2, "above", 1 / 8), (2, "from", 1 / 4), (0, "above", 1 / 2)])
def test_rate_of_reports(r: int, report: str, rate: float) -> None:
    grouping = DStream(Setting(2, 3), r=r, report=report, coin_delay=1)
    for i in range(6000):
        grouping.choose(i % 3, b"a", 0)
    assert len(grouping.detector.reports) / 6000 == pytest.approx(rate, rel=0.1)


def test_workers_change() -> None:
    grouping = DStream(Setting(4, 4), r=0, zeta=1, p=NEVER, filter="exact")
    grouping.detector.filter.add(b"a")
    grouping.workers_changed(WorkersChange(5, [0, 2, 3], [], [1]))
    assert grouping.pointer == [0, 1, 2, 0]
    assert [grouping.choose(1, b"a", 6) for _ in range(3)] == [2, 3, 0]
    assert grouping.allowed == 3
    tuples = [(i * 1000, b"%d" % (i % 5), None) for i in range(60)]
    changes = (Change("join", at_ms(20)), Change("leave", at_ms(40), 0))
    run = simulate(tuples, DStream(Setting(2, 2), r=0, zeta=1), workers=2, sources=2, changes=changes)
    assert [len({c.allowed for c in run.choices[a:b]} - {0}) for a, b in ((0, 20), (20, 40), (40, 60))] == [1, 1, 1]
    assert {c.allowed for c in run.choices[20:40]} <= {0, 3}
    assert 0 not in {c.worker for c in run.choices[40:]}
