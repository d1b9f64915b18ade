"""What a grouping may know of the keys that a source has met: contexts made of them."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from streamgroup.engines.keys.typed_key_arrays import Keys, make_keys, pack
from streamgroup.engines.keys.typed_key_values import KINDS
from streamgroup.groupings.protocol import Context, GroupingParams
from streamgroup.kernels import hash_placement, random_draws
from streamgroup.replay.scenario.options import ReplayOptions
from streamgroup.traces.hash_and_show_keys import hash_keys

__all__ = ["ContextRule"]

I64 = NDArray[np.int64]
# What stands for a part of a composite key that is not there yet.
_PART = {"string": '""', "bytes": '""', "int": "0", "long": "0", "boolean": "false"}


class ContextRule:
    """Makes contexts for some keys, from the options of a run; `sources` and delays are as there."""

    def __init__(self, params: GroupingParams, options: ReplayOptions, network_delay: int, control_delay: int) -> None:
        self._params, self._options = params, options
        self._delays = network_delay, control_delay

    def context(self, keys: Sequence[bytes | None], live: I64, capacity: int = 0) -> Context:
        """Return what the grouping may know of `keys`, and of as many placeholders behind as make up a `capacity`."""
        options, blank = self._options, max(0, capacity - len(keys))
        hash_lo, hash_hi = (np.concatenate([part, np.zeros(blank, np.int64)]) for part in hash_keys(keys))
        for part in (hash_lo, hash_hi):
            part.flags.writeable = False

        def typed(kind: str) -> Keys:
            data, start, null = pack([*keys, *([_placeholder(kind)] * blank)])
            return make_keys(kind, data, start, null, source="the stream")

        return Context(
            workers=len(live),
            sources=options.sources,
            keys=len(hash_lo),
            hash_lo=hash_lo,
            hash_hi=hash_hi,
            hash_seed=options.hash_seed,
            seed=options.seed,
            network_delay=self._delays[0],
            control_delay=self._delays[1],
            candidates=self._candidates(hash_lo, hash_hi, live),
            draw_stream=lambda purpose: random_draws.stream(options.seed, purpose),
            live=live,
            params=self._params,
            typed_keys=typed,
            key_type=options.key_type,
        )

    def _candidates(self, hash_lo: I64, hash_hi: I64, live: I64) -> Callable[[int], NDArray[np.uint16]]:
        seed, modulo = self._options.hash_seed, self._params.modulo()
        return lambda d: hash_placement.candidates(hash_lo, hash_hi, d, live, seed, modulo=modulo)


def _placeholder(kind: str) -> bytes:
    """Return a key that can be read under a type, in place of one that is not known yet."""
    if kind in KINDS:
        return b"0"
    return f"[{','.join(_PART[part] for part in kind.split(','))}]".encode()
