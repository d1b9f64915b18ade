"""The grouping of a run: started, called through its hooks, and notified when the workers change."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgroup.base.compiling.plain_python import view
from streamgroup.base.compiling.plain_python_kinds import NotPlainError
from streamgroup.base.errors import RunError, StreamgroupError, UsageError
from streamgroup.groupings.protocol import Context, WorkersChange
from streamgroup.kernels.compiling.call_kernel import MOST_CELLS, cells
from streamgroup.kernels.control_servers import ControlServers
from streamgroup.replay.compile_grouping import Code, check_shape, code_of
from streamgroup.replay.scenario.grouping_selection import Selection
from streamgroup.replay.scenario.user_code_errors import describe_error

__all__ = ["RunningGrouping"]

I64 = NDArray[np.int64]

# Fields of a state that the loop or the metrics read.
_SIZES = ("state_entry_bytes", "detector_entry_bytes", "detector_fixed_bytes")
_STATISTICS = ("choices", "control_messages", "control_bytes", "detector_entries", "next_read", "room", "state_entries")


class RunningGrouping:
    """A grouping's state and what it reports.

    `context` makes what the grouping may know, for the ids of the live workers.
    """

    def __init__(self, selection: Selection, context: Callable[[I64], Context], live: I64, *, changes: bool) -> None:
        self.selection = selection
        self._context = context
        first = context(live)
        self._sources = first.sources
        with self.blamed("start() failed"):
            state = selection.module.start(selection.params, first)
        check_shape(state, selection.name)
        if changes and not callable(getattr(type(state), "workers_changed", None)):
            raise UsageError(
                f"-g {selection.name}: this grouping does not say what happens when workers join, leave or crash",
                "give its state a method workers_changed(self, change, context)",
            )
        # The largest state of a source, where it is a number that only changes of workers change.
        self.most_entries = 0
        self._sent_before: dict[str, int] = {}
        self._jobs_before: list[int] = []
        self._delay_before = (0, 0)
        self.take(state)

    def take(self, state: Any) -> None:
        """Go on with a state."""
        self.state = state
        self.hooks = state
        self._check_statistics()
        entries = getattr(state, "state_entries", None)
        self.entries: I64 | None = entries if isinstance(entries, np.ndarray) else None
        if isinstance(entries, int):
            self.most_entries = max(self.most_entries, entries)
        self.choices: I64 | None = getattr(state, "choices", None)
        self.detector: I64 | None = getattr(state, "detector_entries", None)
        # The nominal size of an entry of the detector, and what it holds beside its entries.
        self.entry_bytes: int | None = self._statistic(
            "detector_entry_bytes", getattr(state, "state_entry_bytes", None)
        )
        self.fixed_bytes: int = self._statistic("detector_fixed_bytes", 0)
        self.room: I64 | None = self._statistic("room", None)
        # When the state next reads completion feedback.
        self.next_read: I64 | None = self._statistic("next_read", None) if self.has_feedback else None

    def _check_statistics(self) -> None:
        """Refuse what compiled code would read past its end, or as something else than it is."""
        for name in _STATISTICS:
            value = self._statistic(name, None)
            most = self._sources if name == "state_entries" else 1
            if value is None or (name == "state_entries" and isinstance(value, int) and value >= 0):
                continue
            if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.shape == (most,):
                continue
            wanted = "int64[sources], or an int that is not negative" if name == "state_entries" else "int64[1]"
            raise UsageError(f"{self.selection.name}: the field {name} of its state must be {wanted}")
        for name in _SIZES:
            size = self._statistic(name, 0)
            if not isinstance(size, int) or size < 0:
                raise UsageError(f"{self.selection.name}: the field {name} must be an int that is not negative")

    def _statistic(self, name: str, default: Any) -> Any:
        """Return a field of the state, or else of its detector."""
        return getattr(self.state, name, getattr(getattr(self.state, "detector", None), name, default))

    @property
    def code(self) -> Code:
        """Name what its compiled functions are made from."""
        return code_of(self.selection.code_name, self.state, self.selection.outside_digest)

    @property
    def has_feedback(self) -> bool:
        """Return whether it receives completion feedback."""
        return callable(getattr(type(self.state), "executed", None))

    def change(self, change: WorkersChange) -> None:
        """Notify it that workers joined or left."""
        with self.blamed("workers_changed() failed"):
            if hasattr(self.state, "tick"):
                # Timers and messages that were due before this instant.
                self._tick(change.now - 1)
            state = self.state.workers_changed(change, self._context(change.live))
        self._replace(state, "workers_changed()")

    def _tick(self, now: int) -> None:
        if not self.selection.outside_digest and cells(self.state) <= MOST_CELLS:
            with contextlib.suppress(NotPlainError):
                view(self.state).tick(now)
                return
        self.state.tick(now)

    def grow(self, tuples: int) -> None:
        """Let the state grow until it has room for so many more tuples."""
        while self.room is not None and self.room[0] < tuples:
            before = int(self.room[0])
            with self.blamed("grown() failed"):
                if callable(getattr(type(self.state), "grown", None)):
                    state = self.state.grown()
                else:
                    state = self.state._replace(detector=self.state.detector.grown())
            self._replace(state, "grown()")
            if self.room[0] <= before:
                raise RunError(
                    f"{self.selection.name}: grown() left room for {self.room[0]} tuples, before it was {before}",
                    "return the state with larger arrays, and in room[0] how many more tuples they have room for",
                )

    def _replace(self, state: Any, by: str) -> None:
        """Go on with a state that a hook returned; of the same class it has the same shape."""
        if type(state) is not type(self.state):
            raise RunError(
                f"{self.selection.name}: {by} gave a {type(state).__name__}, not a {type(self.state).__name__}",
                "return the state with other arrays, as in self._replace(load=...)",
            )
        for field, before, now in zip(state._fields, self.state, state, strict=True):
            if isinstance(before, np.ndarray) and _layout(now) != _layout(before):
                raise RunError(
                    f"{self.selection.name}: {by} gave {field} as {_layout(now)}, before it was {_layout(before)}",
                    "keep the types and the numbers of dimensions of all arrays",
                )
        self.take(state)

    def begin_measuring(self) -> None:
        """Note what it has sent so far, on its own account: that was warm-up."""
        self._sent_before = {name: self._number(name) for name in ("control_messages", "control_bytes")}
        servers = self._servers()
        self._jobs_before = [] if servers is None else servers.jobs.tolist()
        self._delay_before = self.signal_delay() or (0, 0)

    def control_work(self) -> int | None:
        """Return the service time in ns of what the busiest control server was given since measuring began.

        None without servers that take time.
        """
        servers = self._servers()
        if servers is None or not servers.takes.any():
            return None
        before = self._jobs_before or [0] * len(servers.jobs)
        work: list[int] = [
            (jobs - earlier) * takes
            for jobs, earlier, takes in zip(servers.jobs.tolist(), before, servers.takes.tolist(), strict=True)
        ]
        return max(work)

    def _servers(self) -> ControlServers | None:
        """Return its control servers; a user's field of this name may be anything."""
        servers = self._statistic("servers", None)
        return servers if isinstance(servers, ControlServers) else None

    def signal_delay(self) -> tuple[int, int] | None:
        """Return the sum of the delays in ns of signals that made a key hot since measuring began, and their number.

        None where there are no signals, or no servers of them that take time.
        """
        delay: I64 | None = self._statistic("signal_delay", None)
        if delay is None or self.control_work() is None:
            return None
        return int(delay[0]) - self._delay_before[0], int(delay[1]) - self._delay_before[1]

    def sent(self, name: str) -> int:
        """Return what it reports to have sent (`control_messages`, `control_bytes`) since measuring began, else 0."""
        return self._number(name) - self._sent_before.get(name, 0)

    def _number(self, name: str) -> int:
        return int(self._statistic(name, np.zeros(1))[0])

    @property
    def source(self) -> Path:
        """Name its file."""
        return Path(self.selection.module.__file__)

    @contextlib.contextmanager
    def blamed(self, what: str) -> Iterator[None]:
        """Report an error in a user's file as theirs, and keep what it prints out of the results."""
        if not self.selection.outside_digest:
            yield
            return
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield
        except StreamgroupError:
            raise
        except (Exception, SystemExit) as error:
            found = describe_error(error, self.selection.module)
            raise RunError(f"{self.selection.name}: {what}: {found}") from error


def _layout(value: Any) -> str:
    """Return what an array must keep: its type and its number of dimensions."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    return f"{value.dtype}[{':, ' * (value.ndim - 1)}:]" + ("" if value.flags.c_contiguous else " with gaps")
