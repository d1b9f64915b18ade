"""The interface of hot-key detectors: the part of a grouping's state that decides whether a tuple's key is hot.

A detector is a module, found by its file name and named by `detector=` of a grouping that has this parameter. It holds

- `Params`, a subclass of `GroupingParams`: its own parameters, which are given in the grouping's text beside the
  grouping's (`d_choices:theta=1/8n,eps=0.001`); the grouping's `start` gets both in one object;
- `start(params, context)`, which returns its state: a `typing.NamedTuple` of arrays and numbers with the hooks below
  and the fields `entries` (int64[1]: what all sources hold) and `held` (int64[sources]: what each source holds). It may
  have `total` (int64[sources]: the tuples of each source so far, of which its estimates are shares), `entry_bytes`
  (int: the nominal size of what `held` counts), `detector_entry_bytes` (int: that of one of `entries`, if it is
  another), `detector_fixed_bytes` (int: what all sources hold beside the entries), `control_messages` and
  `control_bytes` (int64[1]), and `room` (int64[1]) with a method `grown`, as groupings have them.

An entry of a key has 16 bytes, and two cells of a sketch are one entry, so that detectors compare.

Hooks (argument names are fixed; see `groupings.protocol` for what may be done in them):

- `detect(self, source, key, now)`: count a tuple at its source, before anything else is done with it; 0 if its key
  is to be treated as cold, else the estimate of its count, or 1 if it makes none. A detector that forgets estimates a
  share of something else than `total`; it reports that share of `total`. Required.
- `hottest(self, source, estimates)`: for groupings that need the shares of all hot keys: fill `estimates` (int64) with
  those of the source's hot keys, largest first, and return how many there are, `most` (an int field) at most.
- `tick(self, now)`: timers and messages; may do nothing. Required.
- `workers_changed(self, change, context)`: plain Python; returns the new state.
"""

from collections.abc import Callable
from typing import Any, Protocol

from streamgroup.groupings.protocol import GroupingParams

__all__ = ["Detector"]


class Detector(Protocol):
    """A module that holds a detector."""

    __name__: str
    Params: type[GroupingParams]
    start: Callable[[Any, Any], Any]
