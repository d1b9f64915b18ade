"""Dynamic key grouping (DKG of 003): a key that keeps coming up gets one more worker at a time."""

from math import floor, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from streamgroup.groupings._hash_parameter import HashedParams
from streamgroup.groupings._loads_when_workers_change import carry_loads
from streamgroup.groupings._time_parameters import Time, time_ns
from streamgroup.groupings.dynamic_kg import baby_teenage_old_keys as kernel
from streamgroup.groupings.dynamic_kg.baby_teenage_old_keys import (
    Spaces,
    add_baby,
    grow_old,
    item_of,
    larger_spaces,
    make_spaces,
    space_of,
)
from streamgroup.groupings.dynamic_kg.neighbouring_candidates import at_or_after, count_below, least_share, share
from streamgroup.groupings.protocol import Context, Destinations, WorkersChange
from streamgroup.kernels.compiling.call_kernel import call
from streamgroup.kernels.int_map import enlarged, get, make_int_map, put, remove

__all__ = ["CITE", "DynamicKeyGrouping", "Params", "start"]

CITE = ("003",)

I64 = NDArray[np.int64]

# Room at the start, for items and for widths of all sources; both grow.
_ITEMS, _WIDTHS = 1 << 12, 1 << 9


class Params(HashedParams):
    """Parameters of dynamic key grouping, with the symbols of 003."""

    expected_keys: int = Field(
        default=100,
        ge=10,
        le=1_000_000,
        description="expected keys; Old holds 10 % of them, Teenage 40 %, and 50 % stay Babies at a timer (4.1)",
    )
    warmup: Time = Field(default="15s", description="time from the first arrival in which no key gets more workers")
    teenage_period: Time = Field(default="15s", description="time between promotions of Babies to Teenage")
    old_period: Time = Field(
        default="60s", description="time between promotions to Old, a multiple of teenage_period (algorithm 2: 60 s)"
    )
    check_interval: Time = Field(
        default="60s", description="time between two checks whether a key needs more workers or fewer (4.1.1)"
    )
    initial: int = Field(default=2, ge=1, le=4096, description="workers of a key at first (N_m)")
    load: Literal["float", "int"] = Field(
        default="float",
        description="float, or int: loads and threshold L_s cut down to whole percents, as in the authors' code",
    )
    baby_cap: int = Field(
        default=0, ge=0, le=1 << 40, description="most Babies of a source, new keys beyond are not noted; 0: no limit"
    )
    promotion: Literal["fill", "literal"] = Field(
        default="fill",
        description="fill: free places of the next space first, then swaps; literal: swaps alone, equals too (alg. 3)",
    )

    truncate: Literal["count", "age"] = Field(
        default="count",
        description="which Babies stay at a timer: the most frequent (count), or those first seen (age)",
    )

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed."""
        return ("hash_seed",)

    def doubts(self, workers: int, sources: int, keys: int) -> list[str]:
        """The Old space is small if there are many more keys than expected."""
        del workers, sources
        if keys <= 100 * self.expected_keys:
            return []
        places = self.expected_keys // 10
        return [f"expected_keys={self.expected_keys} with {keys} keys: at most {places} at a time can get more workers"]

    def destinations(self, context: Context) -> Destinations:
        """A key begins with F_1 and those after it in the list of the live."""
        width = min(self.initial, context.workers)
        places = (_places(context)[:, np.newaxis] + np.arange(width)) % context.workers
        return Destinations(context.live[places], "a key that keeps coming up gets the next workers by id, one by one")

    @model_validator(mode="after")
    def _periods(self) -> "Params":
        teenage, old = time_ns(self.teenage_period), time_ns(self.old_period)
        if teenage == 0:
            raise ValueError("teenage_period must be above 0")
        if old == 0 or old % teenage:
            raise ValueError("old_period must be a multiple of teenage_period")
        return self


class DynamicKeyGrouping(NamedTuple):
    """The least loaded of a key's workers, which follow one another in the list of the live (003 algorithm 4).

    A key starts with `initial` workers. It may get one more if all of them are loaded above the threshold L_s =
    100/n + sqrt(100/n) percent of what the source sent, and only if it is in the Old space, where what comes up often
    ends up (`spaces`; algorithms 2 and 3). It gives one back if two of its workers are below the threshold.

    `base` uint16[keys] is the place of F_1 in `live` int64[n]; `counts` int64[sources, N] and `total` int64[sources]
    are of what a source sent to live workers; `widths` maps key * sources + source to N_k where that is above `initial`
    (`more_widths` int64[1] counts them). `threshold` float64[2]: L_s, and 1 if loads are whole percents. `timer`
    int64[1]: when Babies are promoted next. `room` int64[1]: for how many more new keys there is room.

    Departures from the paper (each as in the authors' code): a key is checked once in 60 s, not at every tuple, which
    would scale out and back without end; free places of a space are filled before anything is swapped, and equals are
    not swapped (`promotion=literal` has algorithm 3, by which nothing is ever promoted from an empty start); Babies are
    truncated by count, in the order that algorithm 1 has just sorted them in (`truncate=age` discards the newest, as
    its words say, but then the first keys of a stream stay for ever and new ones never); after scaling down the choice
    that is made anew counts. Loads are exact, not whole percents (`load=int`). Every fourth run of the timer goes on to
    the Old space, the first at 60 s (in the code at 45 s).
    """

    base: NDArray[np.uint16]
    live: I64
    counts: I64
    total: I64
    widths: I64
    more_widths: I64
    spaces: Spaces
    threshold: NDArray[np.float64]
    timer: I64
    room: I64
    choices: I64
    state_entries: I64
    detector_entries: I64
    warmup: int
    teenage_period: int
    old_every: int
    check_interval: int
    initial: int
    keep_babies: int
    baby_cap: int
    is_literal: bool
    by_age: bool
    state_entry_bytes: int

    def tick(self, now: int) -> None:
        """Promote at multiples of the period; of several that were missed, only once."""
        if now >= self.timer[0]:
            passed = self.timer[0] // self.teenage_period - 1
            number = now // self.teenage_period
            to_old = number // self.old_every > passed // self.old_every
            for source in range(self.total.shape[0]):
                self.state_entries[source] -= grow_old(
                    self.spaces, source, self.keep_babies, to_old, self.is_literal, self.by_age
                )
            self.timer[0] = (number + 1) * self.teenage_period
            self.detector_entries[0] = self.spaces.pool[kernel.USED]
            self.room[0] = min(kernel.rooms(self.spaces, self.widths, self.more_widths))

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the least loaded of the key's workers, and see from time to time whether it needs more or fewer."""
        live, counts, total, spaces = self.live, self.counts, self.total, self.spaces
        row = np.uint64(source)
        base = np.int64(self.base[np.uint64(key)])
        code = key * total.shape[0] + source
        whole = self.threshold[1] != 0
        # Widths that are kept are above `initial`; for the others `get` gives -1.
        width = min(max(get(self.widths, code), self.initial), live.shape[0])
        best = least_share(counts, total, live, source, base, width, whole)
        one = item_of(spaces, source, key)
        self.choices[0] = 0
        if one == 0:
            if self.baby_cap == 0 or spaces.source[row, kernel.BABIES] < self.baby_cap:
                add_baby(spaces, source, key)
                self.state_entries[row] += 1
                self.detector_entries[0] += 1
                self.room[0] = min(kernel.rooms(spaces, self.widths, self.more_widths))
        else:
            is_old = space_of(spaces, one) == kernel.OLD
            checked = spaces.item[one, kernel.CHECKED]
            if checked < 0 or now - checked > self.check_interval:
                spaces.item[one, kernel.CHECKED] = now
                least = share(counts[row, best], total[row], whole)
                if now > self.warmup and least >= self.threshold[0] and is_old and width < live.shape[0]:
                    further = at_or_after(live, base, width)
                    if share(counts[row, further], total[row], whole) < least:
                        best = further
                        width += 1
                        more = put(self.widths, code, width)
                        self.more_widths[0] += more
                        self.state_entries[row] += more
                elif width > self.initial and count_below(counts, total, live, source, base, width, self.threshold) > 1:
                    width -= 1
                    if width > self.initial:
                        put(self.widths, code, width)
                    else:
                        fewer = remove(self.widths, code)
                        self.more_widths[0] -= fewer
                        self.state_entries[row] -= fewer
                    best = least_share(counts, total, live, source, base, width, whole)
                self.room[0] = min(kernel.rooms(spaces, self.widths, self.more_widths))
            spaces.item[one, kernel.COUNT] += 1
            if is_old:
                self.choices[0] = width
        counts[row, np.uint64(best)] += 1
        total[row] += 1
        return best

    def grown(self) -> "DynamicKeyGrouping":
        """Double what there is least room in."""
        spaces, widths = self.spaces, self.widths
        items_left, widths_left = call(kernel.rooms, spaces, widths, self.more_widths)
        if items_left <= widths_left:
            spaces = larger_spaces(spaces)
        if widths_left <= items_left:
            widths = enlarged(widths, widths.shape[0])
        room = np.array([min(call(kernel.rooms, spaces, widths, self.more_widths))], dtype=np.int64)
        return self._replace(spaces=spaces, widths=widths, room=room)

    def workers_changed(self, change: WorkersChange, context: Context) -> "DynamicKeyGrouping":
        """Hash every key anew to the live workers; keep counts (`carry_loads`), spaces and widths up to n."""
        counts = carry_loads(self.counts, change)
        widths, count, entries = np.zeros_like(self.widths), 0, self.state_entries.copy()
        for slot, wide in self.widths[self.widths[:, 0] > 0]:
            code, width = int(slot) - 1, min(int(wide), context.workers)
            if width > self.initial:
                call(put, widths, code, width)
                count += 1
            else:
                entries[code % len(entries)] -= 1
        entries += context.workers - self.live.shape[0]
        changed = self._replace(
            base=_places(context),
            live=change.live.copy(),
            counts=counts,
            total=counts[:, change.live].sum(axis=1),
            widths=widths,
            more_widths=np.array([count], dtype=np.int64),
            threshold=_threshold(context.workers, bool(self.threshold[1])),
            state_entries=entries,
            spaces=Spaces._make(array.copy() for array in self.spaces),
            timer=self.timer.copy(),
            choices=self.choices.copy(),
            detector_entries=self.detector_entries.copy(),
        )
        room = np.array([min(call(kernel.rooms, changed.spaces, widths, changed.more_widths))], dtype=np.int64)
        return changed._replace(room=room)


def _places(context: Context) -> NDArray[np.uint16]:
    """Return the place of each key's F_1 in the list of the live."""
    return np.searchsorted(context.live, context.candidates(1)[:, 0]).astype(np.uint16)


def _threshold(workers: int, whole: bool) -> NDArray[np.float64]:
    """Return L_s in percent (003 equations 3 and 4), and whether loads are whole percents."""
    ideal = 100.0 / workers
    value = ideal + sqrt(ideal)
    return np.array([floor(value) if whole else value, float(whole)])


def start(params: Params, context: Context) -> DynamicKeyGrouping:
    """Compute the first candidate of every key; all spaces are empty."""
    spaces = make_spaces(context.sources, params.expected_keys, _ITEMS)
    period = time_ns(params.teenage_period)
    return DynamicKeyGrouping(
        base=_places(context),
        live=context.live.copy(),
        counts=np.zeros((context.sources, context.workers), dtype=np.int64),
        total=np.zeros(context.sources, dtype=np.int64),
        widths=make_int_map(_WIDTHS),
        more_widths=np.zeros(1, dtype=np.int64),
        spaces=spaces,
        threshold=_threshold(context.workers, params.load == "int"),
        timer=np.full(1, period, dtype=np.int64),
        room=np.full(1, min(_ITEMS, _WIDTHS), dtype=np.int64),
        choices=np.zeros(1, dtype=np.int64),
        state_entries=np.full(context.sources, context.workers, dtype=np.int64),
        detector_entries=np.zeros(1, dtype=np.int64),
        warmup=time_ns(params.warmup),
        teenage_period=period,
        old_every=time_ns(params.old_period) // period,
        check_interval=time_ns(params.check_interval),
        initial=params.initial,
        keep_babies=params.expected_keys // 2,
        baby_cap=params.baby_cap,
        is_literal=params.promotion == "literal",
        by_age=params.truncate == "age",
        state_entry_bytes=24,
    )
