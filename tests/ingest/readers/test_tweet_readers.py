"""Readers of tweets: twitter, tweets-csv and posg-tweets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, StreamgroupError, UsageError
from streamgroup.ingest.make_trace import IngestResult
from streamgroup.ingest.parsing import lines
from tests.ingest.naive_ingest import tuples_of

Parse = Callable[..., Any]
QUIET = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

# The shapes are those of the platform's interfaces; people and texts are invented.
V1 = {
    "created_at": "Tue Sep 09 18:44:28 +0000 2014",
    "id_str": "1",
    "text": "RT @ann: $AAPL up &amp; $AAPL again #Vote #vote",
    "user": {"id": 7, "id_str": "7", "screen_name": "bob", "created_at": "Mon Jan 05 01:02:03 +0000 2009"},
    "retweeted_status": {
        "created_at": "Mon Sep 08 00:00:00 +0000 2014",
        "text": "$MSFT #other",
        "entities": {"hashtags": [{"text": "other"}]},
    },
    "entities": {
        "hashtags": [{"text": "Vote", "indices": [1, 2]}, {"text": "vote", "indices": [3, 4]}],
        "symbols": [{"text": "AAPL", "indices": [5, 6]}, {"text": "AAPL", "indices": [7, 8]}],
        "user_mentions": [{"screen_name": "ann", "id": 3}],
    },
    "timestamp_ms": "1410288268123",
}
LONG = {
    "created_at": "Tue Sep 09 18:44:29 +0000 2014",
    "text": "cut off\u2026 #cut",
    "user": {"id": 8},
    "entities": {"hashtags": [{"text": "cut"}]},
    "extended_tweet": {"full_text": "the whole of it #whole", "entities": {"hashtags": [{"text": "whole"}]}},
}
V2 = {
    "data": {
        "created_at": "2020-11-20T04:32:46.000Z",
        "author_id": "9",
        "text": "$TSLA #new",
        "entities": {"hashtags": [{"start": 6, "end": 10, "tag": "new"}], "cashtags": [{"tag": "TSLA"}]},
    },
    "includes": {"users": [{"id": "9", "created_at": "2010-01-01T00:00:00.000Z"}]},
}
BARE = {"created_at": "2020-11-20T04:32:47.000Z", "author": {"id": "10"}, "text": "a &lt;b&gt; #x @cyd"}
OLD = {"created_at": "Fri, 01 Jan 2010 00:00:00 +0100", "from_user_id": 11, "text": "#old"}
TWEETS = [V1, LONG, V2, BARE, OLD]
TIMES = [1410288268_000000, 1410288269_000000, 1605846766_000000, 1605846767_000000, 1262300400_000000]


def jsonl(*objects: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\r\n" for each in objects)


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


@pytest.mark.parametrize(
    ("kind", "expected", "empty"),
    [
        ("hashtags", [b"Vote", b"vote", b"whole", b"new", b"x", b"old"], 0),
        ("cashtags", [b"AAPL", b"AAPL", b"TSLA"], 3),
        ("mentions", [b"ann", b"cyd"], 3),
        ("user", [b"7", b"8", b"9", b"10", b"11"], 0),
    ],
)
def test_keys_of_tweets_of_every_age(parse: Parse, kind: str, expected: list[bytes], empty: int) -> None:
    rows = parse(jsonl(*TWEETS), "twitter", reader_options={"keys": kind})
    assert keys(rows) == expected
    assert rows.filtered == ({"no keys": empty} if empty else {})
    assert (rows.rows, rows.rejects) == (5, [])


def test_words_are_those_of_the_whole_text(parse: Parse) -> None:
    rows = parse(jsonl(*TWEETS), "twitter")
    assert keys(rows)[:3] == [b"rt", b"ann", b"aapl"]
    assert b"amp" not in keys(rows)
    assert [key for _, key in rows.tuples if _ == TIMES[1]] == [b"the", b"whole", b"of", b"it", b"whole"]
    assert [key for _, key in rows.tuples if _ == TIMES[3]] == [b"a", b"b", b"x", b"cyd"]


def test_the_time_is_the_tweets_own(parse: Parse) -> None:
    rows = parse(jsonl(*TWEETS), "twitter", reader_options={"keys": "user"})
    assert [time for time, _ in rows.tuples] == TIMES
    rows = parse(jsonl(V1), "twitter", time="timestamp_ms", reader_options={"keys": "user"})
    assert rows.tuples == [(1410288268_123000, b"7")]
    rows = parse(jsonl(V1), "twitter", time="user.created_at", time_format="%a %b %d %H:%M:%S %z %Y",
                 reader_options={"keys": "user"})  # fmt: skip
    assert rows.tuples == [(1231117323_000000, b"7")]
    without = {name: value for name, value in V1.items() if name != "created_at"}
    assert parse(jsonl(V2, without), "twitter").rejects == [(2, "time cannot be read")]


def test_every_month(parse: Parse) -> None:
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    many = [{"created_at": f"Tue {month} 01 00:00:00 +0000 2013", "text": "x"} for month in months]
    iso = [{"created_at": f"2013-{month:02d}-01T00:00:00Z", "text": "x"} for month in range(1, 13)]
    assert parse(jsonl(*many), "twitter").tuples == parse(jsonl(*iso), "twitter").tuples


def test_a_key_twice_in_a_tweet(parse: Parse) -> None:
    for asked, expected in (
        ({"keys": "cashtags"}, [b"AAPL", b"AAPL"]),
        ({"keys": "cashtags", "once": True}, [b"AAPL"]),
        ({"keys": "cashtags", "fold_case": True}, [b"aapl", b"aapl"]),
        ({"keys": "hashtags", "once": True}, [b"Vote", b"vote"]),
        ({"keys": "hashtags", "fold_case": True, "once": True}, [b"vote"]),
    ):
        assert keys(parse(jsonl(V1), "twitter", reader_options=asked)) == expected
    twice = parse(jsonl(V1, V1), "twitter", reader_options={"keys": "cashtags", "once": True})
    assert keys(twice) == [b"AAPL", b"AAPL"]
    words = parse(jsonl(V1), "twitter", reader_options={"once": True})
    assert keys(words) == [b"rt", b"ann", b"aapl", b"up", b"again", b"vote"]


def test_messages_that_are_no_tweets(parse: Parse) -> None:
    notices = [{"delete": {"status": {"id": 1}}}, {"delete": {"status": {"id": 2}}}, {"limit": {"track": 3}},
               {"scrub_geo": {"user_id": 1}}, {"status_withheld": {"id": 1}}, {"errors": [{"title": "x"}]},
               {"data": {"delete": {"tweet": {"id": "1"}}}}]  # fmt: skip
    faults = [{"data": [{"text": "a"}, {"text": "b"}]}, [V1], {"id": 3}, {**BARE, "text": {}}, {**BARE, "entities": 3}]
    rows = parse(jsonl(*notices, *faults, BARE) + b'\r\n{"text": \n', "twitter", reader_options={"keys": "hashtags"})
    assert rows.tuples == [(TIMES[3], b"x")]
    assert rows.filtered == {
        "control message: delete": 3,
        "control message: limit": 1,
        "control message: scrub_geo": 1,
        "control message: status_withheld": 1,
        "control message: errors": 1,
        "blank": 1,
    }
    unfit = "a field of the tweet is of a type that cannot serve"
    assert sorted(rows.rejects) == [
        (8, "a page of tweets, not one: flatten it first"),
        (9, "not a JSON object"),
        (10, "neither a tweet nor a control message: no text in it"),
        (11, unfit),
        (12, unfit),
        (15, "not JSON"),
    ]


def test_tags_of_texts(parse: Parse) -> None:
    text = "#one#two a#no &#39; #123 #4th ＃été #tag_1! http://a/#no $A $BRK.B $5 $TOOLONGX US$ $AAPL, @x_1 a@no.eu @@"
    asked = jsonl({"created_at": "2020-01-01T00:00:00Z", "text": text})

    def found(kind: str) -> list[str]:
        return [key.decode() for key in keys(parse(asked, "twitter", reader_options={"keys": kind})) if key]

    assert found("hashtags") == ["one", "4th", "été", "tag_1"]
    assert found("cashtags") == ["A", "BRK.B", "AAPL"]
    assert found("mentions") == ["x_1"]


def test_wrong_options_and_files_of_tweets(parse: Parse) -> None:
    with pytest.raises(UsageError, match="twitter has no --cost"):
        parse(jsonl(V1), "twitter", cost="1")
    with pytest.raises(UsageError, match="posg-tweets has no --delimiter") as caught:
        parse(jsonl(V1), "posg-tweets", delimiter=";")
    assert "tweets in JSON" in (caught.value.hint or "")
    with pytest.raises(UsageError, match=r"twitter: keys: .*'hashtags'"):
        parse(jsonl(V1), "twitter", reader_options={"keys": "tags"})
    with pytest.raises(DataError, match="no tweets in it"):
        parse(json.dumps([V1, V2]).encode(), "twitter")


TABLE = (
    b"id,created_at,text\r\n"
    b'1,Tue Sep 09 18:44:28 +0000 2014,"a #Tag,\r\nsecond $AAPL &amp; $AAPL"\r\n'
    b'2,2016-11-08 10:00:00,"say ""hi"" @bob #tag #\xc3\xa9t\xc3\xa9 #x\xff"\r\n'
    b"3,2016-11-08 10:00:01,\r\n"
)


def test_tweets_in_tables(parse: Parse) -> None:
    rows = parse(TABLE, "tweets-csv", reader_options={"keys": "cashtags"})
    assert rows.tuples == [(TIMES[0], b"AAPL")] * 2
    assert (rows.rows, rows.filtered) == (4, {"header": 1, "no keys": 2})
    assert keys(parse(TABLE, "tweets-csv", reader_options={"keys": "cashtags", "once": True})) == [b"AAPL"]
    tags = keys(parse(TABLE, "tweets-csv", reader_options={"keys": "hashtags", "fold_case": True}))
    assert tags == [b"tag", b"tag", "été".encode(), b"x"]
    assert keys(parse(TABLE, "tweets-csv", reader_options={"keys": "mentions"})) == [b"bob"]
    words = keys(parse(TABLE, "tweets-csv"))
    assert words[:5] == [b"a", b"tag", b"second", b"aapl", b"aapl"]


def test_columns_of_tables(parse: Parse) -> None:
    table = b"when;body\n01.02.2016 10:00;#a\n"
    rows = parse(table, "tweets-csv", delimiter=";", time="when", time_format="%d.%m.%Y %H:%M",
                 reader_options={"text": "body", "keys": "hashtags"})  # fmt: skip
    assert rows.tuples == [(1454320800_000000, b"a")]
    with pytest.raises(UsageError, match=r"no column 'txt' \(--text\). Found: 1 id, 2 created_at, 3 text"):
        parse(TABLE, "tweets-csv", reader_options={"text": "txt"})
    with pytest.raises(UsageError, match=r"which column is the text\? Found: 1 time, 2 body") as caught:
        parse(b"time,body\n1,#a\n", "tweets-csv")
    assert "--text" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="tweets-csv has no --key") as caught:
        parse(TABLE, "tweets-csv", key="text")
    assert "--text" in (caught.value.hint or "")


@pytest.fixture
def classes(tmp_path: Path) -> str:
    path = tmp_path / "classes.tsv"
    path.write_text("Anna Rossi\tpolitician\r\nLa Voce\tmedia\n\nCarla\tother\n")
    return str(path)


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_mentions_in_lines(parse: Parse, classes: str, blank: str) -> None:
    content = f"1{blank}Anna Rossi\n2{blank}La Voce\n\n3{blank}someone\n4\n".encode()
    rows = parse(content, "posg-tweets", reader_options={"classes": classes})
    assert rows.tuples == [(1_000_000, b"Anna Rossi"), (2_000_000, b"La Voce"), (3_000_000, b"someone")]
    assert rows.cost == [5000.0, 25000.0, 1000.0]
    assert (rows.rejects, rows.filtered) == ([(5, "wrong number of fields")], {"blank": 1})


MENTIONS = jsonl(
    {"created_at": "2014-05-01T00:00:00Z", "text": "x", "mention": ["z", "Anna Rossi", "La Voce", "La Voce"]},
    {"created_at": "2014-05-01T00:00:01Z", "text": "of @carla"},
    {"created_at": "2014-05-01T00:00:02Z", "text": "of nobody"},
    {"created_at": "2014-05-01T00:00:03Z", "text": "x", "mention": "anna rossi"},
    {"delete": {}},
    {"created_at": "2014-05-01T00:00:04Z", "text": "x", "mention": [1, None]},
)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, [(b"z", 1e3), (b"Anna Rossi", 5e3), (b"La Voce", 25e3), (b"La Voce", 25e3), (b"carla", 1e3),
              (b"anna rossi", 1e3)]),
        ({"per": "tweet"}, [(b"La Voce", 25e3), (b"carla", 1e3), (b"anna rossi", 1e3)]),
        ({"per": "tweet", "fold_case": True}, [(b"la voce", 25e3), (b"carla", 1e3), (b"anna rossi", 5e3)]),
        ({"per": "tweet", "class_costs": "other=2us, politician=3us,media=1ns", "default_class": "media"},
         [(b"Anna Rossi", 3.0), (b"carla", 0.001), (b"anna rossi", 0.001)]),
        ({"entities": "text", "per": "tweet"}, [(b"x", 1e3), (b"of @carla", 1e3), (b"of nobody", 1e3), (b"x", 1e3),
                                                (b"x", 1e3)]),
    ],
)  # fmt: skip
def test_mentions_in_tweets(parse: Parse, classes: str, asked: dict[str, str], expected: list[Any]) -> None:
    rows = parse(MENTIONS, "posg-tweets", reader_options={"classes": classes, **asked})
    assert keys(rows) == [key for key, _ in expected]
    assert rows.cost == pytest.approx([cost for _, cost in expected])
    if "entities" not in asked:
        assert rows.rejects == [(6, "a field of the tweet is of a type that cannot serve")]
        assert rows.filtered == {"control message: delete": 1, "no keys": 1}


def test_without_classes_all_cost_the_same(parse: Parse) -> None:
    rows = parse(b"1 a\n2 b\n", "posg-tweets")
    assert rows.cost == [1000.0, 1000.0]
    assert "no --classes: all entities are of the default class" in rows.inferred


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"class_costs": "media"}, "--class-costs: 'media' is not a class and its cost"),
        ({"class_costs": "other=1ms,other=2ms"}, "--class-costs: 'other=2ms' is not"),
        ({"class_costs": "other=-1ms"}, "--class-costs other: '-1ms' is not a duration"),
        ({"default_class": "rest"}, "--default-class: 'rest' has no cost"),
        ({"class_costs": "other=1ms"}, r"--classes .*: line 1: the class 'politician' has no cost"),
        ({"classes": "missing.tsv"}, "--classes missing.tsv: No such file"),
    ],
)
def test_wrong_classes(parse: Parse, classes: str, asked: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse(MENTIONS, "posg-tweets", reader_options={"classes": classes, **asked})
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tmedia\nb media\n", "line 2: there is no tab"),
        ("a\tmedia\na\tother\n", "line 2: 'a' has another class above"),
    ],
)
def test_wrong_files_of_classes(parse: Parse, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "wrong").write_text(content)
    with pytest.raises(UsageError, match=message):
        parse(MENTIONS, "posg-tweets", reader_options={"classes": str(tmp_path / "wrong")})


JSONS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*V1, *LONG, *V2, "mention", "delete", "hashtags", "tag"]), inner, max_size=4),
    ),
    max_leaves=8,
)
LINE = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([json.dumps(tweet).encode() for tweet in TWEETS]),
    st.builds(lambda tweet, more: json.dumps({**tweet, **more}).encode(), st.sampled_from([V1, LONG, V2["data"], BARE]),
              st.dictionaries(st.sampled_from([*V1, "mention", "full_text", "extended_tweet"]), JSONS, max_size=3)),
    JSONS.map(lambda found: json.dumps(found).encode()),
    st.sampled_from([b"1 a", b"1\tb", b"time,text", b'1,"#a', b'$b"', b"2,#a", b""]),
)  # fmt: skip
ASKED = st.one_of(
    st.builds(lambda keys, once: ("twitter", {"keys": keys, "once": once, "fold_case": once}),
              st.sampled_from(["words", "hashtags", "cashtags", "mentions", "user"]), st.booleans()),
    st.builds(lambda keys: ("tweets-csv", {"keys": keys, "fold_case": True}), st.sampled_from(["words", "hashtags"])),
    st.builds(lambda per: ("posg-tweets", {"per": per}), st.sampled_from(["mention", "tweet"])),
)  # fmt: skip


@QUIET
@given(body=st.lists(LINE, max_size=8), asked=ASKED, block=st.integers(1, 64))
def test_any_bytes_add_up(parse: Parse, body: list[bytes], asked: tuple[str, dict[str, Any]], block: int) -> None:
    reader, own = asked
    content = b"\n".join(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        try:
            pieces = parse(content, reader, reader_options=own)
        except StreamgroupError:
            return
    assert pieces == parse(content, reader, reader_options=own)


@pytest.mark.spark
def test_mentions_become_a_trace(make: Callable[..., IngestResult], classes: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(MENTIONS)
    result = make("posg-tweets", tmp_path / "a.jsonl", reader_options={"classes": classes}, max_rejects="1")
    assert [key for _, key in tuples_of(result.trace)] == [
        "z",
        "Anna Rossi",
        "La Voce",
        "La Voce",
        "carla",
        "anna rossi",
    ]
    facts = result.manifest
    assert (facts.rows_read, facts.rows_kept, facts.rows_rejected, facts.rows_filtered) == (6, 3, 1, 2)
    assert facts.total_cost_ns == 58_000_000
