"""DStream's predictor of hot keys: coins at the sources, a synopsis of candidates, and a filter of what is hot now."""

from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from streamgroup.base.limits import fits
from streamgroup.groupings._control_server_time import ServiceTime, service_ns
from streamgroup.groupings._time_parameters import Delay, delay_ns
from streamgroup.groupings.detectors.synopsis import bit_vectors, counting_bloom, messages_in_flight
from streamgroup.groupings.detectors.synopsis.bit_vectors import Synopsis, coin_tossed, deliver, report, room_left, toss
from streamgroup.groupings.detectors.synopsis.messages_in_flight import Messages
from streamgroup.groupings.protocol import Context, GroupingParams, WorkersChange
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.control_servers import ControlServers, make_servers

__all__ = ["Params", "Predictor", "start"]

# A counter of the filter.
_COUNTER_BYTES = 1
# A key in the synopsis with its vector.
_VECTOR_BYTES = 16
# Bytes of a signal that a tuple was seen.
_SIGNAL_BYTES = 8
# Reports on the way, and keys in the synopsis, that there is room for at the start.
_ROOM = 1024
# Counters of the filter, a byte each.
_MOST_COUNTERS = 1 << 28


class Params(GroupingParams):
    """Parameters of the predictor."""

    r: int = Field(default=6, ge=0, le=48, description="length of a run of heads above which a key is reported (r)")
    l: int = Field(default=16, ge=1, le=64, description="bits of a key's vector (l); r + l is at most 64")  # noqa: E741
    p: float = Field(default=0.01, gt=0, le=1, description="share of the vectors that is shifted at each report (p)")
    zeta: int = Field(default=2, ge=1, le=64, description="bits that make a key hot (more than one in the paper)")
    coins: int = Field(default=0, ge=0, le=1 << 16, description="coin servers; 0: sources toss the coin, in no time")
    coin_service: ServiceTime = Field(
        default="0", description="time that a coin server takes for the signal of a tuple"
    )
    synopsis_service: ServiceTime = Field(default="0", description="time that the synopsis takes for a report")
    coin_delay: Delay = Field(default=None, description="delay of reports, as in 5ms; default: the control delay")
    broadcast_delay: Delay = Field(default=None, description="delay of broadcasts; default: the control delay")
    filter: Literal["bloom", "exact"] = Field(default="bloom", description="bloom: counting Bloom filter; exact: a set")
    counters: int = Field(
        default=1024, ge=16, le=1 << 30, description="counters of the Bloom filter, a power of two (the code has 16)"
    )
    hashes: int = Field(default=4, ge=1, le=8, description="counters that each key has in the Bloom filter")
    decline: Literal["bernoulli", "drawn"] = Field(
        default="bernoulli",
        description="bernoulli: each vector is shifted with probability p (section V); drawn: p x size of them (IV-B)",
    )
    report: Literal["above", "from"] = Field(
        default="above", description="above: runs longer than r; from: also r itself (code)"
    )
    bit: Literal["offset", "absolute"] = Field(
        default="offset",
        description="offset: the shortest reported run is bit 0; absolute: a run of t is bit t (code)",
    )
    signals: Literal["once", "code"] = Field(
        default="once",
        description="once: a key's coming and leaving; code: each report of a hot key, added if absent, and all keys "
        "that leave, with l flips of a coin at most",
    )

    def not_alone(self, sources: int) -> str:
        """All sources report to one synopsis."""
        return "its sources report to one synopsis, which answers all of them: use one source" if sources > 1 else ""

    def seeds_used(self) -> tuple[str, ...]:
        """Coins are tossed."""
        return ("seed",)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if service_ns(self.coin_service) and not self.coins:
            raise ValueError("coin_service is of coin servers, and there are none: give coins")
        if self.r + self.l > 64:
            raise ValueError(f"r + l is {self.r + self.l}, and a coin is tossed 64 times at most")
        if self.counters & (self.counters - 1):
            raise ValueError(f"counters is {self.counters}, which is no power of two")
        if self.longest_run() < self.shortest_run():
            raise ValueError(f"l is {self.l}, and with signals=code no run is longer: none would be reported")
        return self

    def shortest_run(self) -> int:
        """Return the number of heads from which on a run is reported."""
        return self.r if self.report == "from" else self.r + 1

    def longest_run(self) -> int:
        """Return how often a coin is tossed at most."""
        return self.l if self.signals == "code" else self.r + self.l


class Predictor(NamedTuple):
    """A key is hot from when the synopsis has `zeta` different run lengths of it until all of them are shifted out.

    At each tuple its source tosses a coin until the first tail, l + r times at most. If there were more than r heads,
    key and length go to the synopsis, `coin_delay` later. There the length sets a bit; a key that has `zeta` bits for
    the first time is announced; then each vector is shifted right with probability p, and a key without bits leaves,
    which is announced too if its coming was. Announcements reach all sources at once, `broadcast_delay` later, so that
    one filter stands for the copies of all (Chen, Zhang, Jin; 002 sections IV and V).

    Departures from the paper: it says both that p x size vectors are drawn and that each is shifted with probability p;
    the latter is the default. It prints (1/2)^r for the probability of a report, which is (1/2)^(r+1) with "heads
    before the first tail" and "above r"; `report=from` has the printed one. The published code sets bit t, not t-r-1
    (`bit=absolute`); it tosses a coin l times at most, announces a key at every report while it is hot, which a source
    adds if its filter does not have it, and announces the leaving of all keys, which takes away counters of others
    where the filter takes one that never came for a member (`signals=code`). Here each coming and leaving of a hot key
    is announced once. The code's filter has 16 counters, for which 5 hot keys make 28 % of all others look hot; here
    there are 1024.

    `counters` uint8[columns], `columns` uint32[keys, hashes] are the filter; `coins` uint64[sources] the
    streams of tosses; `due` int64[1] is when the next message is; `room` int64[1] how many more tuples there is room
    for; `held` int64[sources] is what each source holds: its counters, or the keys of the exact filter. The detector's
    bytes are those of the synopsis and of all filters but exact ones.

    `servers` serve signals and reports: first the coin servers, then the synopsis. `next_coin` int64[sources] is where
    a source sends its next signal (None: it tosses itself). `signal_delay` int64[2] is the sum of the times from the
    arrival of a signal at the predictor to the announcement of its key, and their number.
    """

    counters: NDArray[np.uint8]
    columns: NDArray[np.uint32]
    coins: NDArray[np.uint64]
    servers: ControlServers
    next_coin: NDArray[np.int64] | None
    signal_delay: NDArray[np.int64]
    reports: Messages
    table: Synopsis
    broadcasts: Messages
    due: NDArray[np.int64]
    room: NDArray[np.int64]
    entries: NDArray[np.int64]
    held: NDArray[np.int64]
    control_messages: NDArray[np.int64]
    control_bytes: NDArray[np.int64]
    shortest: int
    longest: int
    first_bit: int
    zeta: int
    chance: int
    share: float
    report_delay: int
    coin_delay: int
    broadcast_delay: int
    is_drawn: bool
    is_exact: bool
    entry_bytes: int
    detector_entry_bytes: int
    detector_fixed_bytes: int

    def detect(self, source: int, key: int, now: int) -> int:
        """Ask the filter; then toss the coin, and report."""
        hot = counting_bloom.has(self.counters, self.columns, key)
        self.control_messages[0] += 1
        self.control_bytes[0] += _SIGNAL_BYTES
        tossed = coin_tossed(self.servers, self.next_coin, source, now)
        length = toss(self.coins, source, self.shortest, self.longest)
        if length >= 0:
            # The 65th length, which no stream will ever see, shares a bit with the 64th.
            report(self, source, key, min(length - self.first_bit, 63), now, tossed)
        return hot

    def tick(self, now: int) -> None:
        """Handle the reports that are due, then apply the broadcasts that are."""
        if self.due[0] <= now:
            deliver(self, now)

    def grown(self) -> "Predictor":
        """Make room for twice as many messages and keys."""
        reports, table = messages_in_flight.doubled(self.reports), bit_vectors.doubled(self.table)
        broadcasts = messages_in_flight.doubled(self.broadcasts)
        self.room[0] = call(room_left, reports, table, broadcasts)
        return self._replace(reports=reports, table=table, broadcasts=broadcasts)

    def workers_changed(self, change: WorkersChange, context: Context) -> "Predictor":
        """Which keys are hot has nothing to do with the workers."""
        return self


def start(params: Params, context: Context) -> Predictor:
    """Begin with no key hot and nothing on its way; UsageError for too large a filter."""
    exact = params.filter == "exact"
    if not exact:
        fits(params.counters, _MOST_COUNTERS, f"a filter of {params.counters} counters", "lower counters")
    if exact:
        columns = counting_bloom.own_columns(context.keys)
    else:
        columns = counting_bloom.shared_columns(context.hash_lo, params.hashes, params.counters)
    reports, broadcasts = messages_in_flight.make_messages(_ROOM), messages_in_flight.make_messages(8 * _ROOM)
    table = bit_vectors.make_synopsis(_ROOM, context.draw_stream("dstream:decline"), params.signals == "code")
    shortest = params.shortest_run()
    coin_delay = delay_ns(params.coin_delay, context.control_delay)
    services = [service_ns(params.coin_service)] * params.coins + [service_ns(params.synopsis_service)]
    return Predictor(
        counters=np.zeros(context.keys if exact else params.counters, dtype=np.uint8),
        columns=columns,
        coins=np.array([context.draw_stream(f"dstream:coin:{i}") for i in range(context.sources)], dtype=np.uint64),
        servers=make_servers(services),
        next_coin=np.arange(context.sources, dtype=np.int64) % params.coins if params.coins else None,
        signal_delay=np.zeros(2, dtype=np.int64),
        reports=reports,
        table=table,
        broadcasts=broadcasts,
        due=np.full(1, messages_in_flight.NEVER, dtype=np.int64),
        room=np.full(1, call(room_left, reports, table, broadcasts), dtype=np.int64),
        entries=np.zeros(1, dtype=np.int64),
        held=np.full(context.sources, 0 if exact else params.counters, dtype=np.int64),
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        shortest=shortest,
        longest=params.longest_run(),
        first_bit=shortest if params.bit == "offset" else 0,
        zeta=params.zeta,
        # A draw of 53 bits is below p x 2^53 just when it is below the next whole number.
        chance=ceil(Fraction(params.p) * (1 << 53)),
        share=params.p,
        # From the toss, on a clock that is behind by the way to the coin servers. Added to a time it is a time.
        report_delay=min(coin_delay * (2 if params.coins else 1), (1 << 62) - 1),
        coin_delay=coin_delay,
        broadcast_delay=delay_ns(params.broadcast_delay, context.control_delay),
        is_drawn=params.decline == "drawn",
        is_exact=exact,
        entry_bytes=_COUNTER_BYTES,
        detector_entry_bytes=_VECTOR_BYTES,
        detector_fixed_bytes=0 if exact else context.sources * params.counters,
    )
