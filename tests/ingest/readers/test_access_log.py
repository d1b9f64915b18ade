"""The reader of access logs of web servers."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from streamgroup.base.errors import DataError, UsageError
from streamgroup.ingest.options import make_options
from streamgroup.ingest.preview import preview
from tests.ingest.naive_ingest import NOT_LINES

Parse = Callable[..., Any]
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
MOMENT = int(dt.datetime(2015, 5, 17, 10, 5, 3, tzinfo=dt.UTC).timestamp()) * 1_000_000
WHEN = b"[17/May/2015:10:05:03 +0000]"


def line(
    request: bytes = b"GET /a?b=c HTTP/1.1", front: bytes = b"192.0.2.7 - -", back: bytes = b'200 12 "-" "-"'
) -> bytes:
    return b'%b %b "%b" %b\n' % (front, WHEN, request, back)


def keys(rows: Any) -> list[bytes | None]:
    return [key for _, key in rows.tuples]


def test_common_and_combined_lines(parse: Parse) -> None:
    content = (
        b'192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET /blog/?page=2 HTTP/1.1" 200 203023 '
        b'"http://example.org/" "Mozilla/5.0 (X11; Linux x86_64)"\n'
        b'host.example - frank [17/May/2015:12:05:04 +0200] "GET /shuttle/countdown/ HTTP/1.0" 304 -\r\n'
        b'2001:db8::1 - - [17/May/2015:06:05:05 -0400] "HEAD * HTTP/2.0" 200 0 "-" "-" 0.005 "-"'
    )
    rows = parse(content, "access-log")
    assert rows.tuples == [
        (MOMENT, b"/blog/"),
        (MOMENT + 1_000_000, b"/shuttle/countdown/"),
        (MOMENT + 2_000_000, b"*"),
    ]
    assert keys(parse(content, "access-log", reader_options={"query": True}))[0] == b"/blog/?page=2"
    assert parse(content, "access-log", cost="bytes").cost == [203023, 0, 0]
    for key, expected in {
        "host": [b"192.0.2.7", b"host.example", b"2001:db8::1"],
        "status": [b"200", b"304", b"200"],
        "method": [b"GET", b"GET", b"HEAD"],
        "user": [None, b"frank", None],
        "referer": [b"http://example.org/", None, None],
        "agent": [b"Mozilla/5.0 (X11; Linux x86_64)", None, None],
        "bytes": [b"203023", None, b"0"],
        "vhost": [None, None, None],
    }.items():
        assert keys(parse(content, "access-log", key=key, null_keys="keep")) == expected, key


def test_value_and_weight(parse: Parse) -> None:
    rows = parse(line() + line(back=b"404 -"), "access-log", value="status", weight="bytes")
    assert (rows.value, rows.weight) == ([200.0, 404.0], [12.0, 0.0])
    refused = parse(line(back=b"- 5"), "access-log", cost="status")
    assert refused.rejects == [(1, "cost is negative or not a number")]


def test_escaped_quotes_and_those_that_are_not(parse: Parse) -> None:
    content = (
        line(rb"GET /a\"b HTTP/1.1", back=rb'200 1 "http://x/\"" "say \"hi\" \\"')
        + line(b'GET /a"b HTTP/1.1', back=b"404 1")
        + line(b'GET /"a" HTTP/1.1', back=b'404 1 "-" "a 14" screen"')
        + line(rb"GET \winnt" + b"\\", back=b"404 1")
    )
    rows = parse(content, "access-log")
    assert keys(rows) == [rb"/a\"b", b'/a"b', b'/"a"', rb"\winnt" + b"\\"]
    assert not rows.rejects
    assert keys(parse(content, "access-log", key="agent")) == [rb"say \"hi\" \\", b'a 14" screen']


def test_lines_cut_anywhere_are_rejected_or_lack_only_their_end(parse: Parse) -> None:
    whole = line(back=b'200 12 "http://example.org/x" "An agent" 3').strip()
    for cut in range(1, len(whole)):
        rows = parse(line() + whole[:cut], "access-log", key="agent", null_keys="keep")
        assert rows.rows == 2
        assert len(rows.tuples) + len(rows.rejects) == 2
        if len(rows.tuples) == 2:
            # After the number of bytes, or behind the closing quote of a field.
            assert whole[:cut].rstrip(b" ")[-1:] in b'12"3', whole[:cut]
            assert keys(rows)[1] in (None, b"An agent")
    middle = whole.index(b"An agent") + 2
    assert parse(line() + whole[:middle], "access-log").rejects == [(2, "quote is never closed")]
    assert parse(line() + whole[: middle - 3], "access-log", max_rejects="100%").tuples[1:] == [(MOMENT, b"/a")]
    assert parse(line() + b"192.0.2.7 - -", "access-log").rejects == [(2, "no time in brackets")]


def test_what_is_no_request_has_no_path(parse: Parse) -> None:
    junk = [b"-", b"", rb"\x16\x03\x01\x02\x00\x01", b"GET", b"GET ", rb"\n", b"t3 12.1.2", b"SSH-2.0-Go"]
    rows = parse(b"".join(map(line, junk)) + line(), "access-log")
    assert keys(rows) == [b"/a"]
    assert rows.filtered == {"null key": len(junk)}
    kept = parse(b"".join(map(line, junk)) + line(), "access-log", null_keys="keep")
    assert keys(kept) == [None] * len(junk) + [b"/a"]
    assert keys(parse(b"".join(map(line, junk)), "access-log", key="request", null_keys="keep"))[1:] == junk[1:]


def test_paths_as_they_are_written(parse: Parse) -> None:
    requests = [
        b"GET /a b c HTTP/1.0", b"GET /old", b"get /A%20b HTTP/1.1", b"CONNECT example.org:443 HTTP/1.1",
        b"GET http://example.org/p?q=1 HTTP/1.1", b"POST /caf\xc3\xa9\xff HTTP/1.1", b"GET /a?b?c HTTP/1.1",
        b"GET /HTTP/1.1 HTTP/1.1", b"GET /?q HTTP/3",
    ]  # fmt: skip
    rows = parse(b"".join(map(line, requests)), "access-log")
    assert keys(rows) == [
        b"/a b c", b"/old", b"/A%20b", b"example.org:443", b"http://example.org/p", b"/caf\xc3\xa9\xff", b"/a",
        b"/HTTP/1.1", b"/",
    ]  # fmt: skip
    whole = parse(b"".join(map(line, requests)), "access-log", reader_options={"query": True})
    assert keys(whole)[4:] == [
        b"http://example.org/p?q=1", b"/caf\xc3\xa9\xff", b"/a?b?c", b"/HTTP/1.1", b"/?q"
    ]  # fmt: skip


def test_users_with_blanks_and_hosts_behind_proxies(parse: Parse) -> None:
    content = line(front=b"192.0.2.7 - Jo Doe") + line(front=b"192.0.2.7, 192.0.2.8 - -")
    assert keys(parse(content, "access-log", key="user", null_keys="keep")) == [b"Jo Doe", None]
    assert keys(parse(content, "access-log", key="host")) == [b"192.0.2.7", b"192.0.2.7, 192.0.2.8"]


def test_a_virtual_host_in_front(parse: Parse) -> None:
    content = line(front=b"www.example.org:443 192.0.2.7 - -") + line(front=b"example.net:80 ::1 - jo")
    rows = parse(content, "access-log", key="vhost")
    assert keys(rows) == [b"www.example.org:443", b"example.net:80"]
    assert rows.inferred == ("a virtual host comes first",)
    assert keys(parse(content, "access-log", key="host")) == [b"192.0.2.7", b"::1"]
    assert keys(parse(content, "access-log", key="ident", reader_options={"vhost": "no"})) == [b"192.0.2.7", b"::1"]
    plain = parse(line(), "access-log", reader_options={"vhost": "yes"})
    assert plain.rejects == [(1, "not a line of the Common or Combined Log Format")]


def test_times(parse: Parse) -> None:
    def at(stamp: bytes, **options: Any) -> Any:
        return parse(b'h - - [%b] "GET / HTTP/1.0" 200 1\n' % stamp, "access-log", **options)

    assert at(b"17/May/2015:10:05:03").rejects == [(1, "time cannot be read")]
    assert at(b"31/Feb/2015:10:05:03 +0000").rejects == [(1, "time cannot be read")]
    assert at(b"2015-05-17T12:05:03+02:00", time_format="iso8601").tuples == [(MOMENT, b"/")]
    assert at(b"1431857103.5", time_format="s").tuples == [(MOMENT + 500_000, b"/")]


def test_files_that_are_no_log(parse: Parse, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        parse(b"\n\n", "access-log")
    with pytest.raises(UsageError, match=r"no column 'url'.*8 path"):
        parse(line(), "access-log", key="url")
    rows = parse(b"\n  \ntime,key\n1,a\n" + line(), "access-log")
    assert rows.filtered == {"blank": 2}
    assert rows.rejects == [(3, "no time in brackets"), (4, "no time in brackets")]
    path = tmp_path / "log"
    path.write_bytes(line())
    seen = preview(make_options(reader="access-log", inputs=(str(path),), output="unused"))
    assert (seen.time, seen.key, seen.time_format) == ("time", "path", "%d/%b/%Y:%H:%M:%S %z")


def test_limit_counts_lines(parse: Parse) -> None:
    assert len(parse(line() * 5 + b"x\n" + line(), "access-log", limit=6).tuples) == 5


pieces = st.sampled_from(
    [b'"', b"\\", b"[", b"]", b" ", b"-", b"\n", b"\r", b"\x00\xff", WHEN, b"GET /x HTTP/1.1", line(), line()[:-1]]
)


@QUIET
@example(b"", "path")
@given(st.one_of(st.binary(max_size=300), st.lists(pieces, max_size=30).map(b"".join)), st.sampled_from(
    ["path", "method", "host", "agent", "bytes", "vhost"]))  # fmt: skip
def test_any_bytes_add_up(parse: Parse, content: bytes, key: str) -> None:
    assume(not content.startswith(NOT_LINES))
    # Carriage returns alone end lines.
    assume(b"\n" in content or b"\r" not in content)
    try:
        rows = parse(content, "access-log", key=key, value="bytes")
    except DataError:
        assert not content.removeprefix(b"\xef\xbb\xbf").strip(b"\r\n")
        return
    assert rows.rows == content.count(b"\n") + (not content.endswith(b"\n"))
