"""Opens the filesystem of a URL: those that pyarrow has built in, else fsspec's where it is installed."""

import contextlib
import re
import urllib.parse
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from streamgroup.base.errors import EnvironmentFault, StreamgroupError, UsageError
from streamgroup.base.redaction import shown_url

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["Address", "cause", "errors_explained", "open_filesystem", "split_url"]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# What pyarrow.fs opens. Spark's users write s3a for s3.
_BUILT_IN = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_ALIASES = {"s3a": "s3", "s3n": "s3"}
_OBJECT_STORES = ("s3", "gs", "gcs", "abfs", "abfss")
# Characters that stay as they are in the path of a URL; a percent sign begins one that is encoded already.
_SAFE = "/%:@!$&'()*,;=+~[]"
_CAUSE_CHARACTERS = 300


class Address(NamedTuple):
    """The pieces of a URL: scheme, what names the store (host, bucket, account), path without slashes around, query.

    The path is percent-encoded, the query is without its question mark.
    """

    scheme: str
    store: str
    path: str
    query: str

    @property
    def url(self) -> str:
        """Joins the pieces."""
        path = f"/{self.path}" if self.path else ""
        return f"{self.scheme}://{self.store}{path}{f'?{self.query}' if self.query else ''}"

    @property
    def shown(self) -> str:
        """Joins the pieces for people to see: without a password, and without tokens in the query."""
        return shown_url(self.url)

    @property
    def has_folders(self) -> bool:
        """Reports whether folders exist apart from their files; in an object store they are only parts of names."""
        return self.scheme not in _OBJECT_STORES


def split_url(text: str) -> Address | None:
    """Splits a URL, encoding what no URL holds as it is (spaces, letters beyond ASCII); None for what is a path."""
    found = _URL.match(text)
    if found is None:
        return None
    scheme = found[1].lower()
    rest, _, query = text[found.end() :].partition("?")
    store, _, path = rest.partition("/")
    encoded = urllib.parse.quote(path.strip("/"), safe=_SAFE, errors="surrogateescape")
    return Address(_ALIASES.get(scheme, scheme), store, encoded, query)


def open_filesystem(address: Address) -> "tuple[FileSystem, str]":
    """Finds the filesystem of an address, opened once per process and store, and the path within it.

    UsageError for a scheme that nothing here opens, EnvironmentFault when the store cannot be reached.
    """
    if address.scheme in _BUILT_IN:
        filesystem, root = _built_in(address._replace(path=""))
        path = urllib.parse.unquote(address.path)
        return filesystem, f"{root.rstrip('/')}/{path}" if path and root else path or root
    return _by_fsspec(address)


@lru_cache(maxsize=64)
def _built_in(store: Address) -> "tuple[FileSystem, str]":
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        # A slash after the host: without one pyarrow takes no query.
        query = f"?{store.query}" if store.query else ""
        found: tuple[FileSystem, str] = FileSystem.from_uri(f"{store.scheme}://{store.store}/{query}")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{store.shown}: {cause(error)}", "check the URL and what follows its question mark") from None
    except OSError as error:
        raise EnvironmentFault(f"cannot open {store.shown}: {cause(error)}", _hint(store)) from None
    return found


def _by_fsspec(address: Address) -> "tuple[FileSystem, str]":
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        import fsspec
    except ImportError:
        what = f"no filesystem for {address.scheme}:// ({address.shown})"
        raise UsageError(what, f"built in: {_built_in_schemes()}; for others: pip install fsspec") from None
    # Names as they are, but for the web, where a URL is the name.
    web = address.scheme in ("http", "https")
    named = address if web else address._replace(path=urllib.parse.unquote(address.path))
    try:
        filesystem, path = fsspec.core.url_to_fs(named.url)
    except ValueError:
        what = f"no filesystem is called {address.scheme}:// ({address.shown})"
        raise UsageError(what, f"built in: {_built_in_schemes()}; and those of fsspec") from None
    except ImportError as error:
        what = f"no filesystem for {address.scheme}:// here: {cause(error)}"
        raise UsageError(what, "install the package that it names") from None
    except Exception as error:  # noqa: BLE001 (each of fsspec's filesystems has errors of its own)
        raise EnvironmentFault(f"cannot open {address.shown}: {cause(error)}", _hint(address)) from None
    return PyFileSystem(FSSpecHandler(filesystem)), path


def _built_in_schemes() -> str:
    return ", ".join(f"{scheme}://" for scheme in ("file", *_BUILT_IN))


def _hint(address: Address) -> str:
    if address.scheme in ("hdfs", "viewfs"):
        return "set JAVA_HOME, HADOOP_HOME and CLASSPATH (the output of `hadoop classpath --glob`)"
    return "check the URL, the network and the credentials"


def cause(error: BaseException) -> str:
    """Returns in one line why a filesystem failed, without internal details."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    line = re.sub(r"\s*\(Request ID: [^)]*\)|^\[Errno \d+\] ", "", text.splitlines()[0])
    # Of "Failed to open local file 'x'. Detail: [errno 13] Permission denied" the end, of "When initiating ...: AWS
    # Error ACCESS_DENIED during ..." what begins with AWS.
    found = re.search(r"(?<=Detail: )(?:\[errno \d+\] )?(.*)|(AWS Error .*)", line)
    line = (found[1] or found[2] if found else line).rstrip(". ")
    return line if len(line) <= _CAUSE_CHARACTERS else line[:_CAUSE_CHARACTERS] + "..."


@contextlib.contextmanager
def errors_explained(doing: str, place: str) -> Iterator[None]:
    """Turns what a filesystem raises into an EnvironmentFault that names the operation, the place and the cause.

    A file that is not there stays a FileNotFoundError, and a folder in its place an IsADirectoryError.
    """
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, StreamgroupError):
        raise
    except Exception as error:  # noqa: BLE001 (each filesystem has errors of its own)
        address = split_url(place)
        hint = "check its permissions, and the space left" if address is None else _hint(address)
        raise EnvironmentFault(f"cannot {doing} {place}: {cause(error)}", hint) from None
