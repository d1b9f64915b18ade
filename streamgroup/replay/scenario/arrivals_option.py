"""`--arrivals` as it is written: its kinds, and the load that each means."""

from dataclasses import dataclass
from fractions import Fraction

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_number

__all__ = ["SEARCHED", "ArrivalKind", "load_of_arrivals", "parse_arrivals"]

# Kinds that stand for the highest rate that is kept: a search replays at many.
SEARCHED = ("max", "poisson-max")
_KINDS = ("trace", "rate", "poisson", "utilization", "poisson-utilization", "saturate", *SEARCHED)
_PLAIN = ("trace", "saturate", *SEARCHED)
_INSTEAD = {"trace": "use --speedup to replay faster", "saturate": "use --max-pending for the size of the loop"}


@dataclass(frozen=True)
class ArrivalKind:
    """`name` is one of the kinds; `value` is R in tuples per second or RHO, None for those without one."""

    name: str
    value: Fraction | None


def parse_arrivals(text: str) -> ArrivalKind:
    """Read the text of `--arrivals`."""
    name, equals, value = text.partition("=")
    if name not in _KINDS:
        raise UsageError(
            f"--arrivals: there is no kind {name!r}",
            "trace, rate=R, poisson=R, utilization=RHO, poisson-utilization=RHO, saturate, max or poisson-max",
        )
    if name in _PLAIN:
        if equals:
            raise UsageError(f"--arrivals {name} takes no value", _INSTEAD.get(name, "use --max-p99 for its limit"))
        return ArrivalKind(name, None)
    if not equals:
        raise UsageError(
            f"--arrivals {name} needs a value",
            f"write {name}=0.8" if "util" in name else f"write {name}=1000",
        )
    number = parse_number(value, f"--arrivals {name}")
    if not Fraction(1, 10**9) <= number <= 10**9:
        raise UsageError(f"--arrivals {name}: {value} is not between 1e-9 and 1e9")
    return ArrivalKind(name, number)


def load_of_arrivals(kind: ArrivalKind, tuples: int, span_ns: int, capacity: Fraction) -> Fraction | None:
    """Return arrival rate / capacity (in tuples per ns); None for one instant, in a closed loop and in a search."""
    if kind.name in ("saturate", *SEARCHED):
        return None
    if kind.name in ("utilization", "poisson-utilization"):
        return kind.value
    if kind.value is not None:
        return kind.value / 10**9 / capacity
    return Fraction(tuples - 1, span_ns) / capacity if span_ns > 0 else None
