"""Mentions of politicians, media and others in tweets, with the costs of POSG's last experiment (Middleware 2015)."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import UsageError
from streamgroup.base.numbers_and_durations import parse_duration_ns
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing import tweets
from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.parsing.json_text import get
from streamgroup.ingest.parsing.lines import Block, LineReader
from streamgroup.ingest.readers.options import PosgTweets, ReaderOptions
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, refuse
from streamgroup.ingest.readers.twitter import TweetLines

__all__ = ["Reader"]


class _Costs:
    """Service times in us of entities, by their class."""

    def __init__(self, own: Any, options: IngestOptions) -> None:
        costs: dict[str, float] = {}
        for pair in own.class_costs.split(","):
            name, equals, cost = (part.strip() for part in pair.partition("="))
            if not equals or not name or name in costs:
                raise UsageError(
                    f"--class-costs: {pair!r} is not a class and its cost, once each", "write media=25ms,other=1ms"
                )
            costs[name] = parse_duration_ns(cost, f"--class-costs {name}") / 1000
        if own.default_class not in costs:
            raise UsageError(f"--default-class: {own.default_class!r} has no cost", f"known: {', '.join(costs)}")
        self._default = costs[own.default_class]
        self._fold = own.fold_case
        self._known: dict[bytes, float] = {}
        if own.classes is not None:
            self._read(own.classes, options, costs)

    def _read(self, path: str, options: IngestOptions, costs: dict[str, float]) -> None:
        try:
            content = options.file_content(path)
        except OSError as error:
            raise UsageError(f"--classes {path}: {error.strerror}", "give a file of `entity TAB class` lines") from None
        for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
            if not line.strip():
                continue
            entity, tab, name = line.removesuffix(b"\r").rpartition(b"\t")
            cost = costs.get(name.decode(errors="replace").strip())
            if not tab or cost is None:
                what = f"the class {name.decode(errors='replace')!r} has no cost" if tab else "there is no tab"
                raise UsageError(f"--classes {path}: line {number}: {what}", f"classes: {', '.join(costs)}")
            entity = self.folded(entity)
            if self._known.setdefault(entity, cost) != cost:
                shown = entity.decode(errors="replace")
                raise UsageError(f"--classes {path}: line {number}: {shown!r} has another class above", "name it once")

    def folded(self, entity: bytes) -> bytes:
        """Return an entity as it is looked up."""
        if not self._fold:
            return entity
        return entity.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")

    def of(self, entities: pa.Array) -> pa.Array:
        """Return the cost in us of each entity (binary, null: the default), once looked up for each distinct one."""
        distinct = entities.dictionary_encode()
        found = [self._known.get(entity, self._default) for entity in distinct.dictionary.to_pylist()]
        found.append(self._default)
        return pa.array(found, pa.float64()).take(distinct.indices.fill_null(len(found) - 1))


class _Mentions(TweetLines):
    """Entities of tweets."""

    # What may be said of lines is refused when the file is one of tweets.
    unused = ()
    Options = ReaderOptions
    label = "mention"

    def __init__(self, options: IngestOptions, own: Any, costs: _Costs) -> None:
        super().__init__(options.model_copy(update={"reader_options": {}}))
        self._asked, self._costs = own, costs

    def take(self, tweet: tweets.Tweet) -> list[str]:
        """Return the entities of the field, a text or a list of them; without it the users mentioned."""
        field = get(tweet, self._asked.entities)
        if field is None:
            return tweets.listed_entities(*tweets.body(tweet), "mentions")
        found = [field] if isinstance(field, str) else field
        if not isinstance(found, list) or not all(isinstance(entity, str) for entity in found):
            raise TypeError
        return found

    def keys(self, taken: list[Any]) -> tuple[pa.Array, pa.Array | None]:
        """Return all entities of each tweet and their costs, or the first of the costliest."""
        keys = tweets.normalize_keys(tweets.key_lists(taken), fold_case=self._asked.fold_case, once=False)
        cost = pa.ListArray.from_arrays(keys.offsets, self._costs.of(keys.values))
        if self._asked.per == "mention":
            return keys, cost
        bounds = keys.offsets.to_numpy()
        values = cost.values.to_numpy()
        best = [int(start + np.argmax(values[start:end])) for start, end in _filled(bounds)]
        some = np.diff(bounds) > 0
        offsets = pa.array(np.concatenate([[0], np.cumsum(some)]), pa.int32())
        chosen = pa.array(best, pa.int64())
        return (
            pa.ListArray.from_arrays(offsets, keys.values.take(chosen)),
            pa.ListArray.from_arrays(offsets, cost.values.take(chosen)),
        )


def _filled(bounds: Any) -> list[tuple[int, int]]:
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return [(start, end) for start, end in pairs if end > start]


class _Lines(DelimitedReader):
    """`time entity` lines; the entity is the rest of the line."""

    defaults: ClassVar = Defaults(time=("time",), key=("entity",))
    delimiter = None
    names = ("time", "entity")
    key_to_end = True


class Reader(LineReader):
    """Tuples are mentions of entities; what an entity costs is said by its class.

    The paper gives media 25 ms, politicians 5 ms and others 1 ms of service time.
    """

    Options: ClassVar = PosgTweets
    about = "mentions in tweets (JSON lines, or `time entity` lines) with a cost by class of entity"
    defaults: ClassVar = Defaults(time=("created_at", "time"), key=("mention", "entity"), cost=("class",))
    files: ClassVar = ("classes",)
    instead = "keys are entities, costs are said by --class-costs"

    def __init__(self, options: IngestOptions) -> None:
        """Read the classes; UsageError when they cannot be read or one has no cost."""
        super().__init__(options)
        self._costs = _Costs(self.own, options)
        self._mentions = _Mentions(options, self.own, self._costs)
        self._lines = _Lines(options.model_copy(update={"reader_options": {}}))

    def look(self, head: Block, path: str) -> Layout:
        """Detect JSON or lines of two fields by the first character."""
        text = head.data[:4096].tobytes().lstrip()
        inner: LineReader = self._mentions if text.startswith(b"{") else self._lines
        if inner is self._mentions:
            refuse(self.options, "delimiter", "header", hint=f"{path} is one of tweets in JSON")
        layout = inner.look(head, path)
        own: Any = self.own
        note = () if own.classes else ("no --classes: all entities are of the default class",)
        return layout._replace(
            inferred=(*layout.inferred, *note), extra=("tweets" if inner is self._mentions else "lines",)
        )

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Parse as the one or the other; lines get their costs here."""
        if layout.extra == ("tweets",):
            return self._mentions.parse(block, layout, rows)
        parsed = self._lines.parse(block, layout, rows)
        own: Any = self.own
        key = tweets.normalize_keys(parsed.key, fold_case=own.fold_case, once=False)
        return parsed._replace(key=key, cost=self._costs.of(key))
