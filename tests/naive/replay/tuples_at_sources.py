"""The part of a simulation before the choice: tuples come to their sources, which may serve and merge them."""

from typing import Any

from tests.naive.replay.arrivals import source_for
from tests.naive.replay.combiner import Combiner
from tests.naive.replay.options import Options
from tests.naive.replay.source_servers import SourceServers
from tests.naive.replay.tuple_records import Tuple, is_measured

__all__ = ["FINISH", "FLUSH", "LAST_INSTANT", "MESSAGE", "PLACE", "SERVED", "SourceSide"]

LAST_INSTANT = 1 << 62
FINISH, PLACE, MESSAGE, FLUSH, SERVED = 1, 2, 3, 4, 5


class SourceSide:
    """What a simulation does with tuples until they are chosen for."""

    keys: list[Any]
    options: Options
    now: int
    times: Any
    tuples: list[Tuple]
    live: list[int]
    free: list[int]
    queue: list[list[int]]
    waiting: list[Any]
    pending: list[int]
    first_measured: tuple[int, int] | None
    servers: SourceServers | None
    combiner: Combiner | None
    push: Any
    choose: Any
    due_change: Any
    apply: Any

    def next_tuple(self) -> bool:
        """The next tuple of the trace, if it can come now."""
        seq = len(self.tuples)
        if seq == len(self.keys):
            return False
        if self.times is not None:
            if self.times[seq] > self.now:
                return False
            if not self.changed_before_tuple():
                self.arrive(seq, source_for(seq, self.keys[seq], self.options))
            return True
        source = self.emitting_source(seq)
        if source is None:
            return False
        if not self.changed_before_tuple():
            self.arrive(seq, source)
        return True

    def changed_before_tuple(self) -> bool:
        """Apply all changes right before the next tuple; after some it is asked again what comes first now."""
        changes = 0
        while (change := self.due_change(emitting=True)) is not None:
            self.apply(*change)
            changes += 1
        return changes > 0

    def emitting_source(self, seq: int) -> int | None:
        """Who emits the next tuple now: under shuffle the first that can, otherwise its own source or nobody."""
        sources = range(self.options.sources)
        if self.options.source_assignment != "shuffle":
            sources = range(own := source_for(seq, self.keys[seq], self.options), own + 1)
        for source in sources:
            serves = self.servers is not None and self.servers.at_work[source] is not None
            if self.waiting[source] is None and not serves and self.pending[source] < self.options.max_pending:
                return source
        return None

    def arrive(self, seq: int, source: int) -> None:
        if self.now > LAST_INSTANT:
            raise OverflowError(f"tuple {seq}: past the end of the clock")
        self.tuples.append(Tuple(self.now, source, tuple(self.live), len(self.free)))
        if self.first_measured is None and is_measured(seq, self.now, self.options.warmup, len(self.keys)):
            self.first_measured = seq, self.now
        self.pending[source] += 1
        if self.servers is not None:
            self.servers.line[source].append(seq)
            self.serve(source)
        elif self.combiner is not None:
            self.enter(source, seq)
        else:
            self.queue[source].append(seq)
            if self.waiting[source] is None:
                self.choose(source)

    def serve(self, source: int) -> None:
        """A source that takes time begins with its next tuple, if it can."""
        assert self.servers is not None
        begun = self.servers.begin(source)
        if begun is not None:
            self.push(self.now + begun[1], SERVED, source, begun[0])

    def served(self, source: int, seq: int) -> None:
        if self.combiner is None:
            self.queue[source] = sorted([*self.queue[source], seq])
            return
        assert self.servers is not None
        self.servers.leaves(source, seq, self.tuples[seq].arrival_ns, self.now)
        self.serve(source)
        self.enter(source, seq)

    def enter(self, source: int, seq: int) -> None:
        assert self.combiner is not None
        leaves = self.combiner.enter(source, seq, self.now)
        if leaves == self.now:
            self.flush(source)
        elif leaves is not None:
            self.push(leaves, FLUSH, source, None)

    def flush(self, source: int) -> None:
        assert self.combiner is not None
        self.queue[source] += sorted(self.combiner.flush(source, self.now))

    def flush_rest(self) -> bool:
        """At the end of the trace: a mini-batch of which the rest will not come."""
        assert self.combiner is not None
        if len(self.tuples) < len(self.keys) or self.combiner.kind == "time":
            return False
        for source, batch in enumerate(self.combiner.batch):
            if batch and (self.servers is None or self.servers.at_work[source] is None):
                self.flush(source)
                return True
        return False

    def members(self, seq: int) -> list[int]:
        """The originals of what was sent."""
        return [seq] if self.combiner is None else self.combiner.members[seq]
