"""What workers report of a batch, as rows of the next batch's input file: sources take it in before they choose.

Times are in ns since the run's origin, as arrivals are. Sources hear of all tuples that workers finished, in order of
(finish, worker), each when its batch is over. All tuples of a batch arrive at their worker together, when it starts
with the first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.engine_runs.spark_streaming.query_columns import READ
from streamgroup.replay.online.decider import Decider
from streamgroup.replay.online.deliver_finished_tuples import Finishes

__all__ = ["choice_times", "delays", "reports_of", "rows_for_sources", "take_in", "tuples_of"]

I64 = NDArray[np.int64]
_TIMES = ("arrival", "start", "finish")


def tuples_of(read: pa.Table) -> pa.Table:
    """Return the tuples among the rows of an input file, in the stream's order."""
    return read.filter(pc.and_(pc.greater_equal(read["seq"], 0), pc.less(read["worker"], 0))).sort_by("seq")


def _reports_in(read: pa.Table) -> pa.Table:
    """Return the reports among the rows of an input file, in the order in which sources take them in."""
    found = read.filter(pc.greater_equal(read["worker"], 0))
    return found.sort_by([(name, "ascending") for name in ("finish", "worker", "seq")])


def reports_of(read: pa.Table, served: pa.Table, origin_ns: int) -> pa.Table:
    """Return a row (columns `READ`, without source and label) for each tuple of a batch that workers finished.

    `read` is the input file of the batch, `served` what workers returned (columns `SERVED`). Nothing starts before the
    sources have chosen: where the clock of a worker is behind, all times of its batch are moved, so that time does not
    go back at the sources.
    """
    tuples = tuples_of(read)
    done = served.filter(pc.is_null(served["report"])).sort_by("seq")
    if not done["seq"].equals(tuples["seq"]):
        raise RunError("Spark cut the stream into other batches than it was given")
    worker = done["worker"].to_numpy()
    start, finish = (done[name].to_numpy() - origin_ns for name in ("start", "finish"))
    chosen = _last_choice(read)
    begins = np.full(int(worker.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begins, worker, start)
    moved = np.maximum(chosen - begins, 0)[worker]
    columns = {
        "label": [-1] * len(done), "source": [-1] * len(done), "cost": pa.nulls(len(done), pa.float64()),
        **{name: tuples[name] for name in ("seq", "key_id", "key")},
        "arrival": begins[worker] + moved, "worker": worker, "start": start + moved, "finish": finish + moved,
    }  # fmt: skip
    return _reports_in(pa.table({name: columns[name] for name in READ.names}, schema=READ))


def _last_choice(read: pa.Table) -> int:
    """Return the latest time at which any source chooses for a tuple of an input file."""
    # The finish of a tuple that is no report is -1.
    return int(max(pc.max(tuples_of(read)["arrival"]).as_py(), pc.max(read["finish"]).as_py()))


def rows_for_sources(reports: pa.Table, labels: Sequence[int]) -> pa.Table:
    """Return the reports once for each source; `labels` are those of the sources."""
    rows = []
    for source, label in enumerate(labels):
        own = {"source": source, "label": label}
        rows.append(
            pa.table(
                {name: pa.array([own[name]] * len(reports)) if name in own else reports[name] for name in READ.names},
                schema=READ,
            )
        )
    return pa.concat_tables(rows)


def take_in(decider: Decider, read: pa.Table) -> int:
    """Deliver the reports among the rows of a source to its grouping; return the latest finish, 0 without any."""
    reports = _reports_in(read)
    if not len(reports):
        return 0
    worker, arrival, start, finish = (reports[name].to_numpy().astype(np.int64) for name in ("worker", *_TIMES))
    key = decider.ids(reports["key"].to_pylist()).astype(np.int64)
    decider.finished(Finishes(worker, key, arrival, start, finish))
    return int(finish[-1])


def choice_times(arrival: I64, latest: int) -> I64:
    """Return at which times a source chooses: when tuples arrive, but not before the latest report it took in."""
    return np.maximum(arrival, latest)


def delays(finish: I64, batch: I64, taken: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """Return the entries of `run.json` on the delay of reports: how many were taken in, mean and maximum in ms.

    `finish` is when tuples finished, `batch` of which batch they are, and `taken` when sources took in reports with a
    batch, of the one before: ns since the epoch.
    """
    found = [at - finish[batch == number - 1] for number, times in taken.items() for at in times]
    every = np.concatenate([np.zeros(0, dtype=np.int64), *found]) / 1e6
    return {
        "reports": len(every),
        "delay_mean_ms": float(every.mean()) if len(every) else None,
        "delay_max_ms": float(every.max()) if len(every) else None,
    }
