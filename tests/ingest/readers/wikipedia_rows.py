"""Rows of Wikimedia's page views, for the tests of their readers."""

import datetime as dt
from collections import Counter
from collections.abc import Callable
from typing import Any

Parse = Callable[..., Any]
HOUR = 3_600_000_000
LANGUAGE = "wikipedia-pageviews-by-language"


def us(*moment: int) -> int:
    return int(dt.datetime(*moment, tzinfo=dt.UTC).timestamp()) * 1_000_000  # type: ignore[arg-type]


def counted(rows: Any) -> dict[bytes | None, int]:
    return dict(Counter(key for _, key in rows.tuples))


COMPLETE = [
    b"aa.wikibooks Main_Page null desktop 5 A2X3",
    b"ab.wikipedia - 7945 mobile-web 11 U11",
    b"pt.wikipedia A.A.S.A_",
    b" mobile-app 1 N1",
    b'en.wikipedia "%PDF-1.3',
    b"",
    b"1_0_obj",
    b"Foo.bar",
    b"(text)_Tj",
    b"%%EOF desktop 1 Q1",
    b"zh.wikipedia x",
    b"bar 3597889 desktop 1 W1",
    b"en.wikipedia Foo desktop 1 L1",
    b"en.wikipedia \xff 12 mobile-app 3 A1B1C1",
    b"vi.wikiquote half",
    b"vi.wikiquote whole 1 desktop 2 D1E1",
]
DAILY = "pageviews-20210101-user.bz2"
FIRST = us(2021, 1, 1)
