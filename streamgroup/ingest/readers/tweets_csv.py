"""Tweets in CSV files: the words, hashtags, cashtags or mentions of a column of texts, which may go over lines."""

from typing import Any, ClassVar

from streamgroup.ingest.options import IngestOptions
from streamgroup.ingest.parsing import tweets
from streamgroup.ingest.parsing.delimited import DelimitedReader
from streamgroup.ingest.parsing.lines import Block
from streamgroup.ingest.readers.options import TweetsCsv
from streamgroup.ingest.readers.protocol import Defaults, Layout, Parsed, find_column

__all__ = ["Reader"]


class Reader(DelimitedReader):
    """Tweets in CSV: quoted fields hold line breaks, so a file is read by one task."""

    Options: ClassVar = TweetsCsv
    joins: ClassVar[tuple[str, ...]] = ("time",)
    about = "tweets in CSV with a header: words, hashtags, cashtags or mentions of the text as keys"
    defaults: ClassVar = Defaults(
        time=("created_at", "date", "timestamp", "time"), key=("text", "full_text", "tweet", "content")
    )
    delimiter = b","
    quoting = True
    instead = "name the column of the text with --text"
    header = True

    def __init__(self, options: IngestOptions) -> None:
        """Check the options; the key is made of the text, whose column is found apart."""
        super().__init__(options)
        self.options = options.model_copy(update={"multiline": True, "key": "1"})

    def look(self, head: Block, path: str) -> Layout:
        """Lay out a file as any CSV, with the text where the key would be."""
        layout = super().look(head, path)
        own: Any = self.own
        return layout._replace(key=find_column(own.text, self.defaults.key, layout.names, "text", path))

    def parse(self, block: Block, layout: Layout, rows: int | None) -> Parsed:
        """Take rows apart and make keys of the texts."""
        own: Any = self.own
        parsed = super().parse(block, layout, rows)
        keys = tweets.keys_of_texts(parsed.key, own.keys)
        time = tweets.iso_times(parsed.time) if self.options.time_format == "auto" else parsed.time
        return parsed._replace(time=time, key=tweets.normalize_keys(keys, fold_case=own.fold_case, once=own.once))
