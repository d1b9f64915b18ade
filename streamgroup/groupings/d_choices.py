"""D-Choices: tuples of hot keys go to the least loaded of d workers, d as small as balance allows."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamgroup.groupings._detector_and_loads import begun, cursors_of, moved
from streamgroup.groupings._detector_parameter import HeadParams
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.least_loaded_of_many import Cursors
from streamgroup.kernels.optimal_choices import Powers, Variant, choices_needed, due_after, make_powers
from streamgroup.kernels.send_to_least_loaded import Loads, send_to_any, send_to_some, send_to_two

__all__ = ["CITE", "DChoices", "Params", "start"]

CITE = ("001",)


class Params(HeadParams):
    """Parameters of D-Choices, beside those of its detector."""

    eps: float = Field(default=1e-4, gt=0, le=1, description="imbalance that is tolerated (epsilon in 001)")
    recompute_every: int = Field(
        default=0,
        ge=0,
        le=1 << 40,
        description="own tuples after which a source computes d anew; 1: at every hot one; 0: 1/64 of those it has "
        "sent, at most 1000",
    )
    prefixes: Literal["ends", "all"] = Field(
        default="ends", description="which constraints: of the hottest key and of all hot keys, or of every prefix"
    )
    start: Literal["ceil", "round"] = Field(
        default="ceil",
        description="d is sought from p_1 n up, at least 2; or from the nearest integer (authors' code)",
    )
    slack: Literal["scaled", "plain"] = Field(
        default="scaled", description="b_h eps as the paper has it, or eps (the authors' code)"
    )


class DChoices(NamedTuple):
    """The least loaded of d candidates for hot keys, of two for the rest (Nasir et al., ICDE 2016; 001 III-B, IV-A).

    Each source counts what it sent itself, and computes from its estimates of the hot keys' shares the least d for
    which the expected load of the workers that these keys can reach stays under its share + eps
    (`kernels.optimal_choices`). With d >= n, hot keys go to the least loaded of all, as in W-Choices. `d`
    int64[sources] is computed at the first hot tuple at which the source has `due` int64[sources] tuples: its first
    one, then when its tuples have grown by 1/64 or by 1000. Shares are of all tuples so far, so they change fast at
    first and slowly later. With `recompute_every` `due` is the next multiple of it, and d is 2 before the first. When
    workers join or leave, d is due at once.

    Departures from the paper: d is a whole number, at least 2 (the paper starts at the real number p_1 n, which may be
    less); the constraints that are checked are the first and the last, as the paper does in practice; d is not computed
    at every hot tuple (`recompute_every=1`). eps holds for a source and in expectation: imbalance can be larger with
    several sources, and where candidates of hot keys coincide.
    """

    detector: Any
    loads: Loads
    cursors: Cursors
    d: NDArray[np.int64]
    due: NDArray[np.int64]
    estimates: NDArray[np.int64]
    powers: Powers
    choices: NDArray[np.int64]
    state_entries: NDArray[np.int64]
    detector_entries: NDArray[np.int64]
    state_entry_bytes: int
    load_entries: int
    workers: int
    eps: float
    recompute_every: int
    variant: Variant

    def choose(self, source: int, key: int, now: int) -> int:
        """Take the least loaded of d for a hot key, of two for another."""
        row = np.uint64(source)
        if self.detector.detect(source, key, now) > 0:
            total = self.detector.total[row]
            if total >= self.due[row]:
                hot = self.detector.hottest(source, self.estimates)
                # A detector may take this key for hot and report no hot key; then d stays.
                if hot > 0:
                    self.d[row] = choices_needed(self.estimates, hot, total, self.eps, self.powers, self.variant)
                self.due[row] = due_after(total, self.recompute_every)
            d = self.d[row]
            if d >= self.workers:
                d = np.int64(self.workers)
                worker = send_to_any(self.loads, source)
            else:
                worker = send_to_some(self.loads, self.cursors, source, key, d)
            self.choices[0] = d
        else:
            worker = send_to_two(self.loads, source, key)
            self.choices[0] = 0
        self.state_entries[row] = self.detector.held[row] + self.load_entries
        return worker

    def tick(self, now: int) -> None:
        """Let the detector do what is due."""
        self.detector.tick(now)

    def workers_changed(self, change: WorkersChange, context: Context) -> "DChoices":
        """Keep what was counted; each source computes d anew at its next hot tuple."""
        return self._replace(
            **moved(self, change, context),
            cursors=cursors_of(context, context.workers),
            due=np.ones_like(self.due),
            powers=make_powers(context.workers),
        )


def start(params: Params, context: Context) -> DChoices:
    """No key has been seen, nothing has been sent."""
    shared = begun(params, context, "hottest", "total", "most")
    return DChoices(
        **shared,
        cursors=cursors_of(context, context.workers),
        d=np.full(context.sources, min(2, context.workers), dtype=np.int64),
        due=np.full(context.sources, max(1, params.recompute_every), dtype=np.int64),
        # Room for all that the detector can hold.
        estimates=np.zeros(shared["detector"].most, dtype=np.int64),
        powers=make_powers(context.workers),
        eps=params.eps,
        recompute_every=params.recompute_every,
        variant=Variant(every=params.prefixes == "all", rounded=params.start == "round", plain=params.slack == "plain"),
    )
