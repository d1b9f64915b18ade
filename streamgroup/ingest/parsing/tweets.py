"""Tweets in the formats of the platform's interfaces, and the keys in them."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgroup.ingest.parsing.json_text import Fault, decode, get, scalar
from streamgroup.ingest.parsing.split_words import words

__all__ = [
    "Control",
    "Tweet",
    "body",
    "iso_times",
    "key_lists",
    "keys_of_texts",
    "listed_entities",
    "normalize_keys",
    "unwrap",
    "user_of",
]

Tweet = dict[str, Any]

# Messages of the streaming interfaces that stand among the tweets; each is an object with this field.
_CONTROL = (
    "delete", "scrub_geo", "limit", "status_withheld", "user_withheld", "disconnect", "warning", "event", "friends",
    "friends_str", "control", "for_user", "direct_message", "status_delete", "user_delete", "errors", "error",
)  # fmt: skip
# The lists of a tweet's `entities` (v1.1, then v2) and the field of their members that is the key.
_ENTITIES = {
    "hashtags": (("hashtags", "text"), ("hashtags", "tag")),
    "cashtags": (("symbols", "text"), ("cashtags", "tag")),
    "mentions": (("user_mentions", "screen_name"), ("mentions", "username")),
}
_PATTERNS = {
    "hashtags": re.compile(r"(?<![\w&/])[#＃](\w*[^\W\d_]\w*)"),
    "cashtags": re.compile(r"(?<![\w$])\$([A-Za-z]{1,6}(?:[._][A-Za-z]{1,2})?)(?!\w)"),
    "mentions": re.compile(r"(?<![\w@])[@＠](\w{1,15})(?!\w)", re.ASCII),
}
_MARKERS = {"hashtags": "[#＃]", "cashtags": r"\$", "mentions": "[@＠]"}
# The only three characters that the platform writes as entities of HTML, the ampersand last.
_ESCAPES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&amp;", b"&"))
# `Tue Sep 09 18:44:28 +0000 2014`, and `Tue, 09 Sep 2014 18:44:28 +0000` of the first search interface.
_TIMES = (
    (r"^\s*[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{1,2}) (\d{2}:\d{2}:\d{2}) ([+-]\d{4}) (\d{4})\s*$", r"\5-\1-\2T\3\4"),
    (r"^\s*[A-Z][a-z]{2}, (\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}:\d{2}:\d{2}) ([+-]\d{4})\s*$", r"\3-\2-\1T\4\5"),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Control(str):
    """A message that is no tweet, by the reason why it is left out."""

    __slots__ = ()


def unwrap(line: bytes) -> Tweet | Control | Fault:
    """Find the tweet in a line: the object itself (v1.1, or v2 flattened) or its `data` (v2).

    Its fields are not checked yet.
    """
    message = decode(line)
    if isinstance(message, Fault):
        return message
    if not isinstance(message, dict):
        return Fault("not a JSON object")
    if "text" in message or "full_text" in message:
        return message
    inner = message.get("data")
    if isinstance(inner, list):
        return Fault("a page of tweets, not one: flatten it first")
    tweet = inner if isinstance(inner, dict) else message
    if "text" in tweet:
        return tweet
    for name in _CONTROL:
        if name in tweet or name in message:
            return Control(f"control message: {name}")
    return Fault("neither a tweet nor a control message: no text in it")


def body(tweet: Tweet) -> tuple[str, dict[str, Any]]:
    """Return the whole text of a tweet and the entities that belong to it; those of a retweeted one are not its own.

    A long tweet has its text cut off at the usual place and whole in another. TypeError where a field has a wrong type.
    """
    for name, text_name in (("extended_tweet", "full_text"), ("note_tweet", "text")):
        longer = tweet.get(name)
        if isinstance(longer, dict) and isinstance(longer.get(text_name), str):
            return longer[text_name], _object(longer.get("entities"))
    text = tweet.get("full_text")
    if text is None:
        text = tweet.get("text")
    if not isinstance(text, str):
        raise TypeError
    return text, _object(tweet.get("entities"))


def _object(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError
    return value


def listed_entities(text: str, entities: dict[str, Any], kind: str) -> list[str]:
    """Return the hashtags, cashtags or mentions in a tweet's entities, or in its text if there are none of the kind."""
    for name, field in _ENTITIES[kind]:
        members = entities.get(name)
        if isinstance(members, list) and all(isinstance(member, dict) and field in member for member in members):
            found = [member[field] for member in members]
            if not all(isinstance(key, str) for key in found):
                raise TypeError
            return found
    return _extract(_unescape(text), kind)


def _unescape(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape.decode(), character.decode())
    return text


def _extract(text: str, kind: str) -> list[str]:
    found: list[str] = _PATTERNS[kind].findall(text)
    return found


def user_of(tweet: Tweet) -> bytes | None:
    """Return the id of a tweet's author, whatever name the field has; None when it is not there."""
    names = ("user.id_str", "user.id", "author_id", "author.id", "from_user_id_str", "from_user_id")
    return next((scalar(user) for name in names if (user := get(tweet, name)) is not None), None)


def keys_of_texts(texts: pa.Array, kind: str) -> pa.Array:
    """Return the words, hashtags, cashtags or mentions of texts (binary, null is empty), a list for each text."""
    texts = pc.fill_null(texts, b"")
    for escape, character in _ESCAPES:
        texts = pc.replace_substring(texts, escape.decode(), character.decode())
    if kind == "words":
        return words(texts)
    some = np.flatnonzero(pc.match_substring_regex(texts, _MARKERS[kind]).to_numpy(zero_copy_only=False))
    found: list[list[bytes]] = [[] for _ in range(len(texts))]
    for row, text in zip(some.tolist(), texts.take(pa.array(some)).to_pylist(), strict=True):
        keys = _extract(text.decode("utf-8", "surrogateescape"), kind)
        found[row] = [key.encode("utf-8", "surrogateescape") for key in keys]
    return pa.array(found, pa.list_(pa.binary()))


def key_lists(keys: list[list[str]]) -> pa.Array:
    """Make an arrow array of lists of keys."""
    encoded = [[key.encode("utf-8", "surrogatepass") for key in each] for each in keys]
    return pa.array(encoded, pa.list_(pa.binary()))


def normalize_keys(keys: pa.Array, *, fold_case: bool, once: bool) -> pa.Array:
    """Fold the case of keys (a binary array, or lists), and with `once` drop repetitions within a tweet."""
    nested = pa.types.is_list(keys.type)
    flat = keys.flatten() if nested else keys
    if fold_case:
        distinct = flat.dictionary_encode()
        lower = [key.decode("utf-8", "surrogateescape").lower() for key in distinct.dictionary.to_pylist()]
        lowered = pa.array([key.encode("utf-8", "surrogateescape") for key in lower], pa.binary())
        flat = lowered.take(distinct.indices)
    if not nested:
        return flat
    lengths = pc.list_value_length(keys).to_numpy()
    if once and len(flat):
        owner = np.repeat(np.arange(len(keys)), lengths)
        codes = flat.dictionary_encode().indices.to_numpy()
        _, first = np.unique(owner * (int(codes.max()) + 1) + codes, return_index=True)
        first = np.sort(first)
        flat, lengths = flat.take(pa.array(first)), np.bincount(owner[first], minlength=len(keys))
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), flat)


def iso_times(times: pa.Array) -> pa.Array:
    """Convert times such as `Tue Sep 09 18:44:28 +0000 2014` to ISO 8601; others stay as they are."""
    for form, iso in _TIMES:
        matches = pc.fill_null(pc.match_substring_regex(times, form), False)
        if pc.any(matches).as_py():
            written = pc.replace_substring_regex(times, form, iso)
            for number, month in enumerate(_MONTHS, 1):
                written = pc.replace_substring_regex(written, rf"^(\d{{4}})-{month}-", rf"\1-{number:02d}-")
            times = pc.if_else(matches, written, times)
    return times
