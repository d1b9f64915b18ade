"""The options that readers have besides those of all readers, and which of those they refuse.

They are apart from the readers, so that help lists them without importing what readers need.
"""

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "OPTIONS",
    "CountedOptions",
    "DelimitedOptions",
    "DomainOptions",
    "LineOptions",
    "ReaderOptions",
    "TweetOptions",
]


# Options of all readers that several of them refuse: columns of their own, and what is said of lines of fields.
_VALUES = ("cost", "cost_unit", "value", "weight")
_OF_LINES = ("delimiter", "header", "multiline")


class ReaderOptions(BaseModel):
    """Options of a reader, none: subclasses add those of their own.

    `unused` names the options of all readers (fields of IngestOptions) that mean nothing to this one: they are refused
    when given, and left out of its help.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    unused: ClassVar[tuple[str, ...]] = ()


class LineOptions(ReaderOptions):
    """Options of readers of lines, none."""

    unused: ClassVar[tuple[str, ...]] = _OF_LINES


class DelimitedOptions(LineOptions):
    """Options of readers of delimited lines."""

    unused: ClassVar[tuple[str, ...]] = ("multiline",)

    comment: str | None = Field(default=None, min_length=1, description="lines that begin with this are comments")
    ragged: bool = Field(default=False, description="accept rows with more or fewer fields than the first line")


class CountedOptions(LineOptions):
    """Options of readers of rows with counts; each adds a `spread` with the steps of its own periods."""

    unused: ClassVar[tuple[str, ...]] = ("where", "time_format", *_OF_LINES)

    counts: Literal["expand", "weight"] = Field(
        default="expand", description="expand: a tuple for each view or visit; weight: one for each count, its weight"
    )
    seed: int = Field(default=0, ge=0, description="seed of --spread draw")


class DomainOptions(CountedOptions):
    """Options of readers of page views by domain."""

    hour: str | None = Field(default=None, description="the hour in UTC, as 2024-08-03T06, if no file name tells it")
    totals: bool = Field(default=False, description="keep the totals of projects, rows of domains that end with .mw")


class TweetOptions(LineOptions):
    """Options of readers that make keys of tweets."""

    fold_case: bool = Field(default=False, description="keys in lower case: #Vote and #vote are one")
    once: bool = Field(default=False, description="a key counts once a tweet, however often it stands there")


class AccessLog(LineOptions):
    """Options of the access-log reader."""

    query: bool = Field(default=False, description="a path keeps what follows its question mark")
    vhost: Literal["auto", "yes", "no"] = Field(default="auto", description="lines begin with a virtual host")


class AmazonReviews(LineOptions):
    """Options of the amazon-reviews reader."""

    words: Literal["text", "summary"] | None = Field(
        default=None, description="the words of this field are the keys, a tuple for each: text or summary"
    )


class AzureFunctions(LineOptions):
    """Options of the azure-functions reader."""

    unused: ClassVar[tuple[str, ...]] = ("where", "time_format", "timezone", *_VALUES, *_OF_LINES)

    day: int | None = Field(default=None, ge=1, le=366, description="number of the day, if no file name tells it")
    spread: Literal["minute", "none"] = Field(
        default="minute", description="when invocations come: evenly over the minute, or at its start"
    )


class CacheTrace(LineOptions):
    """Options of the cache-trace reader."""

    unused: ClassVar[tuple[str, ...]] = ("multiline",)

    operation: str | None = Field(
        default=None, min_length=1, description="keep these operations only, with commas between: get,gets"
    )


class Csv(DelimitedOptions):
    """Options of the csv reader."""

    unused: ClassVar[tuple[str, ...]] = ()

    escape: str | None = Field(
        default=None, pattern=r"^[!-~]$", description="in quotes, this makes a quote that follows a character: \\\\"
    )
    empty_is_null: bool = Field(default=False, description='an empty key is null, unless it is written ""')


class Memetracker(LineOptions):
    """Options of the memetracker reader."""

    unused: ClassVar[tuple[str, ...]] = ("where", "time", "key", *_VALUES, *_OF_LINES)

    keys: Literal["words", "phrases", "links", "pages"] = Field(
        default="words", description="what the keys are: words (of the phrases), phrases, links or pages"
    )


class OracleGeneral(ReaderOptions):
    """Options of the oracle-general reader, none."""

    unused: ClassVar[tuple[str, ...]] = ("encoding", *_OF_LINES)


class Parquet(ReaderOptions):
    """Options of the parquet reader, none."""

    unused: ClassVar[tuple[str, ...]] = ("encoding", *_OF_LINES)


class PosgTweets(LineOptions):
    """Options of the posg-tweets reader."""

    unused: ClassVar[tuple[str, ...]] = ("where", "key", "multiline", *_VALUES)

    classes: str | None = Field(default=None, description="file of `entity TAB class` lines")
    class_costs: str = Field(
        default="media=25ms,politician=5ms,other=1ms", description="the classes and the service time of each"
    )
    default_class: str = Field(default="other", description="the class of entities that the file does not name")
    entities: str = Field(
        default="mention", description="field of a tweet with its entities; one without it has its user mentions"
    )
    per: Literal["mention", "tweet"] = Field(
        default="mention", description="a tuple for each mention, or one a tweet: its costliest entity"
    )
    fold_case: bool = Field(default=False, description="entities in lower case, those of the file too")


class Trades(DelimitedOptions):
    """Options of the trades reader."""

    unused: ClassVar[tuple[str, ...]] = ()

    symbol: str | None = Field(
        default=None, min_length=1, description="symbol of all trades of files without one; else it is of the path"
    )


class TweetsCsv(DelimitedOptions, TweetOptions):
    """Options of the tweets-csv reader."""

    unused: ClassVar[tuple[str, ...]] = ("key",)

    text: str | None = Field(default=None, description="column of the text: a name, or a number from 1")
    keys: Literal["words", "hashtags", "cashtags", "mentions"] = Field(
        default="words", description="what the keys are: words, hashtags, cashtags or mentions"
    )


class Twitter(TweetOptions):
    """Options of the twitter reader."""

    unused: ClassVar[tuple[str, ...]] = ("where", "key", *_VALUES, *_OF_LINES)

    keys: Literal["words", "hashtags", "cashtags", "mentions", "user"] = Field(
        default="words", description="what the keys are: words, hashtags, cashtags, mentions or user"
    )


class WikipediaClickstream(CountedOptions):
    """Options of clickstreams."""

    month: str | None = Field(default=None, description="the month in UTC, as 2018-01, if no file name tells it")
    spread: Literal["draw", "even", "none"] = Field(
        default="draw",
        description="when the visits of a row come: at random in the month, in even steps, or all at its start",
    )


class WikipediaPageviews(DomainOptions):
    """Options of hourly page views."""

    spread: Literal["hour", "draw", "none"] = Field(
        default="hour",
        description="when the views of a row come: in even steps over the hour, at random, or all at its start",
    )
    untitled: bool = Field(default=False, description="keep rows without a title, those with -")
    decode: bool = Field(default=False, description="decode percent-encoded titles, once")


class WikipediaPageviewsByLanguage(DomainOptions):
    """Options of page views by project or language."""

    day: str | None = Field(
        default=None, description="the day of counts by hour, as 2021-01-31, if no file name tells it"
    )
    month: str | None = Field(
        default=None, description="the month of counts by day, as 2021-01, if no file name tells it"
    )
    spread: Literal["even", "draw", "none"] = Field(
        default="even",
        description="when the views of an hour (or day) come: in even steps, at random, or all at its start",
    )
    without_page_id: bool = Field(
        default=False, description="also take rows that lack only the page id, if domain, device and hours are right"
    )


OPTIONS: dict[str, type[ReaderOptions]] = {
    "access_log": AccessLog,
    "amazon_reviews": AmazonReviews,
    "azure_functions": AzureFunctions,
    "cache_trace": CacheTrace,
    "csv": Csv,
    "jsonl": LineOptions,
    "memetracker": Memetracker,
    "oracle_general": OracleGeneral,
    "parquet": Parquet,
    "posg_tweets": PosgTweets,
    "slb": DelimitedOptions,
    "text": DelimitedOptions,
    "trades": Trades,
    "tweets_csv": TweetsCsv,
    "twitter": Twitter,
    "wikibench": DelimitedOptions,
    "wikipedia_clickstream": WikipediaClickstream,
    "wikipedia_pageviews": WikipediaPageviews,
    "wikipedia_pageviews_by_language": WikipediaPageviewsByLanguage,
}
