"""Dynamic key grouping from outside: tuples sent with their time, and widths of keys looked up and set."""

import numpy as np

from streamgroup.groupings.dynamic_kg import DynamicKeyGrouping
from streamgroup.kernels.int_map import ABSENT, get, put

# Everything is checked at every tuple, and a key that comes up often is in Old after 4 ns.
EAGER = "warmup=0,teenage_period=1ns,old_period=4ns,check_interval=0"


def key_at(state: DynamicKeyGrouping, place: int) -> int:
    """Find a key with its first worker at a place."""
    return int(np.flatnonzero(state.base == place)[0])


def width(state: DynamicKeyGrouping, source: int, key: int) -> int:
    """Give how many workers a key has."""
    found = int(get(state.widths, key * len(state.total) + source))
    return state.initial if found == ABSENT else found


def widen(state: DynamicKeyGrouping, source: int, key: int, workers: int) -> None:
    new = put(state.widths, key * len(state.total) + source, workers)
    state.more_widths[0] += new
    state.state_entries[source] += new


def send(state: DynamicKeyGrouping, key: int, now: int, source: int = 0) -> int:
    state.tick(now)
    return int(state.choose(source, key, now))
