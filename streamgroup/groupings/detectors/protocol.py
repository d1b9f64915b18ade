"""What a detector of hot keys is: a part of a grouping's state that says of each tuple whether its key is hot.

A detector is a module, found by its file name and named by `detector=` of a grouping that has this parameter. It holds

- `Params`, a subclass of `GroupingParams`: its own parameters, which are given in the grouping's text beside the
  grouping's (`d_choices:theta=1/8n,eps=0.001`); the grouping's `start` gets both in one object;
- `start(params, context)`, which returns its state: a `typing.NamedTuple` of arrays and numbers with the hooks below
  and the fields `entries` (int64[1]: what all sources hold) and `held` (int64[sources]: what each source holds);
  `control_messages` and `control_bytes` (int64[1]) as well, if it sends any;
- `hot_share(params, workers)`, the share of the stream (a Fraction) from which on a key ought to be hot, or None.

Hooks (argument names are fixed; see `groupings.protocol` for what may be done in them):

- `detect(self, source, key, now)`: count a tuple at its source, before anything else is done with it; 1 if its key is
  to be treated as hot, else 0. Required.
- `top(self, source, estimates)`: for groupings that need the shares of the hot keys: fill `estimates` (float64) with
  the estimated counts of the source's hot keys, largest first, and return how many there are. The last element
  of `estimates` gets the number of tuples that the counts are to be divided by.
- `tick(self, now)`: timers and messages.
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
    hot_share: Callable[[Any, int], Any]
