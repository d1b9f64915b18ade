"""Dalton: a contextual bandit learns where the tuples of hot keys go."""

from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from streamgroup.base.errors import UsageError
from streamgroup.base.limits import MOST_CELLS, fits
from streamgroup.groupings._share_threshold import Share, share_of, share_parts
from streamgroup.groupings._six_decimals import Millionths
from streamgroup.groupings._sliding_windows import HotKeyParams, begun, moved
from streamgroup.groupings.dalton.merge_sources import NEVER, Table, exchange, make_table, note_slide, table_with
from streamgroup.groupings.dalton.q_value_rows import (
    HELD,
    UNTIL,
    Rows,
    exploit,
    explore,
    learn,
    make_rows,
    row_of,
    take_row,
    throw_out,
    with_capacity,
)
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiled_random_draws import draw_below
from streamgroup.kernels.counts import sent_in_sliding_window
from streamgroup.kernels.counts.sent_in_sliding_window import (
    PAIRS,
    PREVIOUS,
    SLIDE,
    KeyWindows,
    advance,
    count,
    record_of,
    send,
)

__all__ = ["CITE", "Dalton", "Params", "start"]

CITE = ("DALTON",)

I64 = NDArray[np.int64]

_MILLION = 1_000_000


class Params(HotKeyParams):
    """Parameters of Dalton."""

    theta: Share = Field(default="1/n", description="share of a slide from which on a key is hot")
    alpha: float = Field(default=0.1, gt=0, le=1, description="weight of the last reward (a)")
    epsilon: Millionths = Field(default=0.1, ge=0, le=1, description="share of a hot key's tuples that explore")
    balance: float = Field(
        default=0.5, ge=0, le=1, description="weight of load in the reward, against that of replicas"
    )
    split: int = Field(default=2, ge=1, le=65_536, description="workers at which a key is full, at first")
    most_split: int = Field(default=6, ge=1, le=65_536, description="workers at which a key is full, at most")
    capacity: int = Field(
        default=0, ge=0, le=65_536, description="hot keys of a source, at most; 0: twice the number of workers"
    )
    sync: bool = Field(default=True, description="sources merge what they learned at the end of each slide")

    def not_alone(self, sources: int) -> str:
        """With `sync` sources merge what they learned."""
        return "its sources merge what they learned: set sync=false" if self.sync and sources > 1 else ""

    def seeds_used(self) -> tuple[str, ...]:
        """Candidates move with the hash seed, and exploring draws."""
        return ("seed", "hash_seed")

    def hot_share(self, workers: int) -> Fraction:
        """Hot keys are those above theta."""
        return share_of(self.theta, workers)

    @model_validator(mode="after")
    def _splits(self) -> Self:
        if self.split > self.most_split:
            raise ValueError("split must not be above most_split")
        return self


class Dalton(NamedTuple):
    """The worker with the largest Q-value for hot keys, or one to explore; F_1 for cold ones (Zapridou et al., 2022).

    A key is hot while it has a row of Q-values (`rows`). A tuple of it moves the Q-value of its worker towards the
    reward -(balance x (L - mean) / max(L, mean) + (1 - balance) x holders / n), by what the source sent in its window.
    At the end of a slide the sources' rows are merged (`table`). `first` uint16[keys, 1] is F_1, `theta` int64[2]
    numerator and denominator, `weights` float64[4] as in `learn`; a tuple explores if a draw below 10^6 is below
    `explores`; `stream` uint64[sources], `drawn` int64[sources].

    Departures from the authors' code (the text of the paper was not at hand): sources merge at each slide, not at an
    interval that adapts to wall-clock time, and replace what they learned since the report; theta is a share of what a
    source sent itself; keys are counted exactly; slides follow the clock, and the window forgets what it should.
    """

    first: NDArray[np.uint16]
    windows: KeyWindows
    rows: Rows
    table: Table
    theta: I64
    weights: NDArray[np.float64]
    stream: NDArray[np.uint64]
    drawn: I64
    choices: I64
    control_messages: I64
    control_bytes: I64
    state_entries: I64
    room: I64
    explores: int
    most_split: int
    delay: int
    is_merged: bool
    capacity: int
    theta_text: str
    state_entry_bytes: int

    def tick(self, now: int) -> None:
        """Merge what the sources learned, and deliver it."""
        if self.table.clock[0] <= now:
            exchange(self, now)

    def choose(self, source: int, key: int, now: int) -> int:
        """Take F_1, or for a hot key the worker that is best by now or to be tried; count the tuple, and learn."""
        windows, rows = self.windows, self.rows
        if advance(windows, source, now):
            throw_out(rows, source, windows.clock[source, SLIDE])
            if self.is_merged:
                note_slide(self.table, (windows.clock[source, SLIDE] + 1) * windows.slide)
        one = record_of(windows, source, key)
        tuples = count(windows, source, one)
        previous = windows.clock[source, PREVIOUS]
        number = row_of(rows, source, key)
        if previous > 0 and tuples * self.theta[1] > previous * self.theta[0]:
            if number < 0:
                number = take_row(rows, source, key)
            if number >= 0:
                rows.row[source, number, UNTIL] = windows.clock[source, SLIDE] + 1
        worker: Any = np.int64(self.first[np.uint64(key), 0])
        self.choices[0] = 0
        if number >= 0:
            self.choices[0] = windows.live.shape[0]
            drawn = self.drawn[source]
            if draw_below(self.stream[source], drawn, _MILLION) < self.explores:
                worker = explore(rows, windows, source, number, one, self.stream[source], drawn + 1)
                drawn += 1
            else:
                worker = exploit(rows, source, number, windows.live, worker)
            self.drawn[source] = drawn + 1
        send(windows, source, one, worker)
        if number >= 0:
            learn(rows, windows, source, number, one, worker, self.weights, self.most_split)
        workers = windows.live.shape[0]
        self.state_entries[source] = (1 + rows.state[source, HELD]) * workers + windows.clock[source, PAIRS]
        return worker

    def grown(self) -> "Dalton":
        """Make room for more keys; UsageError if there are too many in the windows."""
        windows = sent_in_sliding_window.grown(self.windows, "dalton")
        return self._replace(windows=windows, room=windows.room)

    def workers_changed(self, change: WorkersChange, context: Context) -> "Dalton":
        """Hash every key anew to the live workers; keep windows and rows, in which joiners are not tried.

        UsageError if they would be too large.
        """
        fields = moved(self.windows, change, context, "dalton")
        joined = np.intersect1d(change.live, np.array(change.joined, dtype=np.int64))
        workers = fields["windows"].tuples.shape[1]
        rows = with_capacity(self.rows, _capacity(self.capacity, context, workers), workers, joined)
        table = self.table
        if self.is_merged:
            table = table_with(table, rows.row.shape[0] * rows.row.shape[1], workers, joined)
        return self._replace(
            first=context.candidates(1),
            rows=rows,
            table=table,
            theta=share_parts(self.theta_text, context.workers),
            **{**fields, "state_entries": fields["state_entries"] + rows.state[:, HELD] * context.workers},
        )


def _capacity(capacity: int, context: Context, workers: int) -> int:
    """Return how many rows a source has; UsageError if they would be too large for so many worker ids."""
    capacity = capacity if capacity > 0 else 2 * context.workers
    fits(
        2 * context.sources * capacity * workers,
        MOST_CELLS,
        f"dalton: {capacity} rows of {workers} workers at {context.sources} sources",
        "lower capacity",
    )
    return capacity


def start(params: Params, context: Context) -> Dalton:
    """No key is hot; UsageError for tables that would be too large, or that would take longer than a slide."""
    capacity = _capacity(params.capacity, context, context.workers)
    fields = begun(params, context, "dalton")
    slide = fields["windows"].slide
    is_merged = params.sync and context.sources > 1
    if is_merged and 2 * context.control_delay >= slide:
        raise UsageError(
            f"dalton: slide={params.slide} is not longer than two control delays",
            "make slides longer, lower --control-delay, or set sync=false",
        )
    streams = [context.draw_stream(f"dalton:{source}") for source in range(context.sources)]
    return Dalton(
        first=context.candidates(1),
        rows=make_rows(context.sources, capacity, context.workers, params.split),
        table=make_table(
            context.sources * capacity if is_merged else 1, context.workers, slide if is_merged else int(NEVER)
        ),
        theta=share_parts(params.theta, context.workers),
        weights=np.array([params.balance, 1.0 - params.balance, 1.0 - params.alpha, params.alpha]),
        stream=np.array(streams, dtype=np.uint64),
        drawn=np.zeros(context.sources, dtype=np.int64),
        choices=np.zeros(1, dtype=np.int64),
        control_messages=np.zeros(1, dtype=np.int64),
        control_bytes=np.zeros(1, dtype=np.int64),
        explores=int(Fraction(str(params.epsilon)) * _MILLION),
        most_split=params.most_split,
        delay=context.control_delay,
        is_merged=is_merged,
        capacity=params.capacity,
        theta_text=params.theta,
        **fields,
    )
