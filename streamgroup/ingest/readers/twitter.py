"""Tweets as the platform gives them, one JSON object a line: words, hashtags, cashtags, mentions or authors."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from streamgroup.base.errors import DataError
from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing import fields, tweets
from streamgroup.ingest.parsing.json_text import Fault, get, scalar
from streamgroup.ingest.parsing.lines import HEAD_ROWS, Block, LineReader
from streamgroup.ingest.readers.options import ReaderOptions, Twitter
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, Reject

__all__ = ["Reader", "TweetLines"]

_UNFIT = "a field of the tweet is of a type that cannot serve"


class TweetLines(LineReader):
    """Lines of tweets; a subclass takes its keys out of each, and `label` says what they are."""

    Options: ClassVar[type[ReaderOptions]] = Twitter
    defaults: ClassVar = Defaults(time=("created_at",), key=("words",))
    instead = "what a tuple is made of is said by its own options"
    label: str

    def __init__(self, options: IngestOptions) -> None:
        """Check the options; UsageError says which is wrong."""
        super().__init__(options)
        self._time = options.time or "created_at"

    def take(self, tweet: tweets.Tweet) -> Any:
        """Return what the keys of a tweet are made of; TypeError when a field cannot serve."""
        raise NotImplementedError

    def keys(self, taken: list[Any]) -> tuple[pa.Array, pa.Array | None]:
        """Make the keys, and their costs if they have some, of all that was taken."""
        raise NotImplementedError

    def look(self, head: Block, path: str) -> Layout:
        """Check that there are JSON objects; every tweet has the same columns."""
        lines = fields.find_lines(head.data)
        for row in range(min(len(lines.start), HEAD_ROWS)):
            found = tweets.unwrap(lines.text(head.data, row))
            if not isinstance(found, Fault):
                return Layout(names=(self._time, self.label), time=0, key=1)
        raise DataError(f"{path}: no tweets in it", "give a file with one JSON object a line")

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Decode the lines of a block; what is no tweet is filtered, by the kind of message."""
        del layout
        lines = fields.find_lines(block.data)
        raw = block.data.tobytes()
        bounds = list(zip(lines.start.tolist(), lines.end.tolist(), strict=True))[:rows]
        times: list[bytes | None] = []
        taken: list[Any] = []
        kept: list[int] = []
        rejects: list[Reject] = []
        filtered: dict[str, int] = {}
        for row, (start, end) in enumerate(bounds):
            text = raw[start:end]
            found = tweets.unwrap(text) if text.strip() else tweets.Control("blank")
            if isinstance(found, tweets.Control):
                filtered[found] = filtered.get(found, 0) + 1
                continue
            fault = str(found) if isinstance(found, Fault) else ""
            if not isinstance(found, Fault):
                try:
                    time, what = scalar(get(found, self._time)), self.take(found)
                except TypeError:
                    fault = _UNFIT
            if fault:
                rejects.append(Reject(row + 1, fault, text))
                continue
            times.append(time)
            taken.append(what)
            kept.append(row)
        key, cost = self.keys(taken)
        time_texts = pa.array(times, pa.binary())
        return Parsed(
            rows=len(bounds),
            lines=len(lines.start),
            consumed=len(block.data),
            line=np.array(kept, np.int64) + 1,
            time=tweets.iso_times(time_texts) if self.options.time_format == "auto" else time_texts,
            key=key,
            cost=cost,
            value=None,
            text=lambda entry: raw[slice(*bounds[kept[entry]])],
            rejects=rejects,
            filtered={str(reason): count for reason, count in filtered.items()},
        )


class Reader(TweetLines):
    """Tweets of the interfaces v1.1 and v2, and older ones; only what is the tweet's own counts.

    The time and the tags of a retweeted or quoted tweet, or of the author, are never taken for the tweet's.
    """

    about = "tweets, one JSON object a line (v1.1, v2): words, hashtags, cashtags, mentions or authors as keys"

    def __init__(self, options: IngestOptions) -> None:
        """Check the options; UsageError says which is wrong."""
        super().__init__(options)
        own: Any = self.own
        self.label = own.keys
        self._fold, self._once = own.fold_case and own.keys != "user", own.once

    def take(self, tweet: tweets.Tweet) -> Any:
        """Return the author's id, the text for words, or the tags."""
        if self.label == "user":
            return tweets.user_of(tweet)
        text, entities = tweets.body(tweet)
        return text if self.label == "words" else tweets.listed_entities(text, entities, self.label)

    def keys(self, taken: list[Any]) -> tuple[pa.Array, pa.Array | None]:
        """Make the keys: one of each tweet for users, else a list."""
        if self.label == "user":
            found = pa.array(taken, pa.binary())
        elif self.label == "words":
            texts = pa.array([text.encode("utf-8", "surrogatepass") for text in taken], pa.binary())
            found = tweets.keys_of_texts(texts, "words")
        else:
            found = tweets.key_lists(taken)
        return tweets.normalize_keys(found, fold_case=self._fold, once=self._once), None
