"""An application in a run: its states follow the tuples, and each window ends with the results of its keys."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.errors import RunError
from streamgroup.replay.accounting.outcome import AppResults
from streamgroup.replay.scenario.app_selection import AppSelection, blamed
from streamgroup.replay.stages.app_states import States, joined, mixed_results
from streamgroup.replay.stages.partial_results import Partials
from streamgroup.traces.trace import Batch, Trace

__all__ = ["Application"]

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


class Application:
    """Computes the results of an application; `warmup` tuples of the trace come before the first that is given."""

    def __init__(self, app: AppSelection, states: States, trace: Trace, warmup: int) -> None:
        self._app, self._states, self._trace = app, states, trace
        columns = app.columns
        self._batches = trace.batches(columns, start=warmup, decoders=0) if columns else iter(())
        self._batch: Batch | None = None
        # Where the next tuple is in the batch, and how many there are.
        self._place, self._size = 0, 0
        self._keeps = None if app.keeps is None else self._kept(app.keeps)
        self._zeros = np.zeros(0)
        self._windows: list[I64] = []
        self._keys: list[I64] = []
        self._results: list[dict[str, NDArray[Any]]] = []

    def _kept(self, keeps: Any) -> NDArray[np.bool_]:
        texts = self._trace.key_texts(range(self._trace.keys))
        with blamed(self._app.text, self._app.module):
            return np.array([text is not None and bool(keeps(text)) for text in texts], dtype=bool)

    def add(self, slot: I64, key: NDArray[Any]) -> None:
        """Add the next tuples of the trace, with the row of each, -1 for one that no worker finished."""
        value, weight = self._values(len(key))
        self._states.update(slot, key, value, weight)

    def _values(self, count: int) -> tuple[F64, F64]:
        """Read the columns of the next tuples; zeros for what the application does not ask for."""
        if len(self._zeros) < count:
            self._zeros = np.zeros(count)
        zeros = self._zeros[:count]
        pieces = list(self._pieces(count)) if self._app.columns else []
        columns = []
        for name in ("value", "weight"):
            wanted = name in self._app.columns
            columns.append(np.concatenate([getattr(piece, name) for piece in pieces]) if wanted else zeros)
        return columns[0], columns[1]

    def _pieces(self, count: int) -> Iterator[Batch]:
        while count:
            if self._batch is None or self._place == self._size:
                self._batch, self._place = next(self._batches), 0
                column = self._batch.value if self._batch.value is not None else self._batch.weight
                assert column is not None
                self._size = len(column)
            upto = min(self._place + count, self._size)
            span = slice(self._place, upto)
            value, weight = (
                None if column is None else column[span] for column in (self._batch.value, self._batch.weight)
            )
            yield self._batch._replace(value=value, weight=weight)
            count -= upto - self._place
            self._place = upto

    def take(self, partials: Partials) -> None:
        """Merge the partial results of windows that ended, of each key in the order of its workers."""
        count = len(partials.row)
        if count:
            order, first = partials.by_result, partials.first
            window, key = partials.window[order], partials.key[order]
            if not self._app.mergeable and not first.all():
                self._refuse(int(key[~first][0]), int(window[~first][0]))
            found = self._states.merged(partials.row[order], np.cumsum(first) - 1)
            self._keep(window[first], key[first], found)
        self._states.forget(count)

    def _keep(self, window: I64, key: I64, found: dict[str, NDArray[Any]]) -> None:
        """Keep those results that the application wants."""
        if self._keeps is not None:
            kept = self._keeps[key]
            window, key = window[kept], key[kept]
            found = {name: column[kept] for name, column in found.items()}
        if self._app.largest is not None and len(key):
            ranked = np.lexsort((key, -next(iter(found.values())), window))
            begins = np.searchsorted(window, window)
            best = ranked[np.arange(len(key)) - begins < self._app.largest]
            window, key = window[best], key[best]
            found = {name: column[best] for name, column in found.items()}
        if self._results and list(found) != list(self._results[0]):
            fields = [tuple(name for name in names if name) for names in (self._results[0], found)]
            raise mixed_results(self._app, *fields)
        self._windows.append(window)
        self._keys.append(key)
        self._results.append(found)

    def _refuse(self, key: int, window: int) -> None:
        text = self._trace.key_texts([key])[0]
        raise RunError(
            f"--app {self._app.text} cannot merge: key {text!r} was on several workers in window {window}",
            "take a grouping that keeps each key on one worker, such as kg",
        )

    def finish(self) -> AppResults:
        """Return all results, in the order of window and key id, or of rank."""
        names = list(self._results[0]) if self._results else [""]
        keys = np.concatenate(self._keys) if self._keys else np.zeros(0, dtype=np.int64)
        windows = np.concatenate(self._windows) if self._windows else keys
        used = np.zeros(self._trace.keys, dtype=bool)
        used[keys] = True
        ids, place = np.flatnonzero(used), (np.cumsum(used) - 1)[keys]
        texts = self._trace.key_texts(ids.tolist())
        columns = {name: joined(self._app, [found[name] for found in self._results]) for name in names}
        return AppResults(windows, keys, texts, place.astype(np.int64), columns)
