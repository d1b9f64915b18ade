"""Places in object stores: names, entries, secrets, files that are there only when whole, stores that are gone."""

import pickle
import time

import pytest

from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.storage.output_on_disk_or_object_store import staged_output
from streamgroup.base.storage.storage_path import locate
from streamgroup.traces.layout import MANIFEST
from tests.conftest import Bucket
from tests.object_stores.conftest import invoke


def test_a_place_is_text_that_finds_its_filesystem_again(bucket: Bucket) -> None:
    url = bucket.put("a b/ä=1.gz", b"content")
    place = locate(url)
    assert place.name == "ä=1.gz"
    assert place.parent / place.name == place
    assert " " not in place.text
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert again.read_bytes() == b"content"
    assert again.size() == 7
    assert again.stat().changed > 1_600_000_000 * 10**9
    with again.open_input() as file:
        file.seek(3)
        assert file.read() == b"tent"
    assert (bucket.place().is_dir(), place.is_file(), place.is_dir()) == (True, True, False)
    assert [entry.place for entry in bucket.place().entries(recursive=True)] == [place.parent, place]
    place.remove()
    assert not place.exists()
    place.remove()
    with pytest.raises(FileNotFoundError):
        place.read_bytes()


def test_entries_are_in_the_order_of_bytes(bucket: Bucket) -> None:
    names = ["b", "a/z", "a-b", "ä", "Z"]
    for name in names:
        bucket.put(name, b"")
    assert bucket.names() == sorted(names, key=str.encode)


def test_memory_of_fsspec() -> None:
    pytest.importorskip("fsspec")
    place = locate("memory://store/some folder/x")
    with (place / "ä%20").writing() as file:
        file.write(b"1")
    assert [entry.place.name for entry in place.entries()] == ["ä%20"]
    assert (place / "ä%20").read_bytes() == b"1"
    place.remove_tree()
    assert not place.exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nosuch://a/b", "no filesystem is called nosuch://"),
        ("s3://bucket/x?colour=red", "s3://bucket?colour=***: Unexpected query parameter in S3 URI: 'colour'"),
        ("file://elsewhere/x", "a file of another machine"),
    ],
)
def test_urls_that_nothing_opens(url: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        locate(url).exists()
    assert message in caught.value.message
    assert caught.value.hint


def test_passwords_are_not_shown() -> None:
    place = locate("s3://me:secret@bucket/x?region=r") / "y"
    assert str(place) == "s3://me:***@bucket/x/y?region=r"
    assert locate(place.reference) == place


def test_tokens_in_a_query_are_not_shown() -> None:
    url = "https://h/x?X-Amz-Signature=abc&sig=d%2Be&region=r&scheme=http&endpoint_override=h:1&token="
    place = locate(url)
    assert str(place) == (
        "https://h/x?X-Amz-Signature=***&sig=***&region=r&scheme=http&endpoint_override=h:1&token=***"
    )
    assert (place.where, locate(place.reference)) == (url, place)
    assert str(locate("s3://bucket/part-?/day=1")) == "s3://bucket/part-?/day=1"


def test_what_is_written_is_there_only_when_it_is_whole(bucket: Bucket) -> None:
    bucket.put("x", b"old")

    def fail() -> None:
        with bucket.place("x").writing() as file:
            file.write(b"new" * 1000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert bucket.place("x").read_bytes() == b"old"


def test_large_files_are_sent_from_disk(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgroup.base.storage.storage_path._MEMORY_BYTES", 1 << 10)
    content = bytes(range(256)) * (1 << 16)
    bucket.put("large", content)
    assert bucket.place("large").read_bytes() == content


def test_a_store_that_cannot_be_reached_is_told_soon(bucket: Bucket) -> None:
    url = "s3://bucket/x.trace?endpoint_override=127.0.0.1:1&scheme=http"
    begun = time.monotonic()
    found = invoke("describe", url)
    assert time.monotonic() - begun < 60
    assert found.exit_code == 3
    assert found.stderr.startswith("error: cannot look at s3://bucket/x.trace?endpoint_override=127.0.0.1:1")
    assert "Could not connect to server" in found.stderr
    assert "Traceback" not in found.stderr


def test_no_such_bucket(bucket: Bucket) -> None:
    found = invoke("describe", bucket.url("x.trace", bucket="nosuch"))
    assert found.exit_code == 2
    assert "does not exist" in found.stderr
    with (
        pytest.raises(EnvironmentFault, match="NO_SUCH_BUCKET"),
        staged_output(locate(bucket.url("x", bucket="nosuch")), overwrite=False, marker=MANIFEST),
    ):
        pass
    with (
        pytest.raises(EnvironmentFault, match=r"cannot write s3://nosuch/.*NO_SUCH_BUCKET"),
        locate(bucket.url("x", bucket="nosuch")).writing() as file,
    ):
        file.write(b"1")


@pytest.mark.parametrize(
    ("place", "folder", "lies"),
    [
        ("s3://b/t/x", "s3://b/t", True), ("s3://b/t/x", "s3://b", True), ("s3://b/t", "s3://b/t/", False),
        ("s3://b/tx", "s3://b/t", False), ("s3://b", "s3://b", False), ("s3://b/t", "s3://c", False),
        ("s3://b/t", "/", False), ("/b/t", "/b", True), ("/b/t", "/", True),
    ],
)  # fmt: skip
def test_what_lies_in_a_folder(place: str, folder: str, lies: bool) -> None:
    assert locate(place).lies_in(locate(folder)) is lies
