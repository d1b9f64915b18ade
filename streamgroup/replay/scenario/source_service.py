"""The time that a source takes for each tuple (`--source-service`), as it is written."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_duration_ns
from streamgroup.cluster.service_distribution import Distribution, parse_distribution
from streamgroup.cluster.service_time import MAX_SERVICE_NS

__all__ = ["PURPOSE", "SourceService", "parse_source_service"]

# Of the draws of the random factor.
PURPOSE = "source_service"
_WHAT = "--source-service"


class SourceService(NamedTuple):
    """`times_ns` repeat over the sources; `distribution` is the random factor, None where there is none."""

    times_ns: tuple[int, ...]
    distribution: Distribution | None

    def by_source(self, sources: int) -> NDArray[np.int64]:
        """Return the time of each source in ns: int64[sources]."""
        return np.resize(np.array(self.times_ns, dtype=np.int64), sources)


def parse_source_service(text: str) -> SourceService:
    """Read `20us`, `20us,40us` or, with a distribution behind the last, `20us:exponential`, `20us:lognormal:CV`."""
    times, colon, kind = text.partition(":")
    found = tuple(parse_duration_ns(one.strip(), _WHAT) for one in times.split(","))
    if max(found) > MAX_SERVICE_NS:
        raise UsageError(f"{_WHAT} {text}: a service would last over 2^53 ns (104 days)", "use a shorter one")
    return SourceService(found, parse_distribution(kind if colon else None, _WHAT))
