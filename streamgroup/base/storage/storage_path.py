"""Paths of files and folders: local ones, or URLs of any filesystem that pyarrow or fsspec opens.

A `StoragePath` is text: it can be pickled, and each process opens the filesystem by itself when it first needs it.
"""

import contextlib
import errno
import io
import os
import shutil
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from streamgroup.base.errors import EnvironmentFault, UsageError
from streamgroup.base.storage.filesystems import Address, errors_explained, open_filesystem, split_url
from streamgroup.base.storage.process_tag import partial_beside

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileInfo, FileSystem

__all__ = ["Entry", "StoragePath", "locate"]

# Uploads up to this size are buffered in memory, larger ones in a temporary file.
_MEMORY_BYTES = 64 << 20
# Bytes fetched at a time of a file that is read in small pieces.
_BUFFER_BYTES = 4 << 20


class StoragePath(NamedTuple):
    """A file or folder that may exist or not. `where` is an absolute local path or a URL, `text` what people see.

    Names are bytes: local ones that are not UTF-8 are kept as Python keeps them (surrogate escapes).
    Methods raise an EnvironmentFault that names the place when its filesystem fails.
    """

    where: str
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def _address(self) -> Address | None:
        return split_url(self.where)

    @property
    def is_local(self) -> bool:
        """Reports whether this is a path of this machine."""
        return self._address is None

    @property
    def local(self) -> Path:
        """The local path; ValueError for a URL."""
        if not self.is_local:
            raise ValueError(f"{self.where} is no local path")
        return Path(self.where)

    @property
    def reference(self) -> str:
        """What `locate` makes this place of again: the path as it was given, or the URL with any password."""
        return self.text if self.is_local else self.where

    @property
    def path(self) -> str:
        """The path, decoded; that of a URL without store and parameters."""
        address = self._address
        return self.where if address is None else urllib.parse.unquote(address.path)

    @property
    def name(self) -> str:
        """The last piece of the path, decoded."""
        address = self._address
        if address is None:
            return Path(self.where).name
        return urllib.parse.unquote(address.path.rpartition("/")[2] or address.store)

    @property
    def parent(self) -> "StoragePath":
        """The folder that holds it; the root of a store is its own."""
        address = self._address
        if address is None:
            return locate(Path(self.where).parent)
        return _of(address._replace(path=address.path.rpartition("/")[0]))

    def resolved(self) -> "StoragePath":
        """Follows the symbolic links of a local path."""
        return locate(Path(self.where).resolve()) if self.is_local else self

    def lies_in(self, folder: "StoragePath") -> bool:
        """Reports whether the path of this place begins with that of a folder; links are not followed."""
        own, outer = self._address, folder._address
        if own is None or outer is None:
            return own is outer and Path(folder.where) in Path(self.where).parents
        prefix = f"{outer.path}/" if outer.path else ""  # the root of a store has no path
        return own.store == outer.store and own.path.startswith(prefix) and own.path != outer.path

    def within(self, folder: "StoragePath") -> str:
        """Returns the decoded path from a folder to this place, which lies in it."""
        if self.is_local:
            return os.path.relpath(self.where, folder.where)
        return self.path.removeprefix(folder.path).strip("/")

    def joined(self, *names: str) -> "StoragePath":
        """Returns the place that these names lead to from here; a URL keeps its parameters."""
        address = self._address
        if address is None:
            return StoragePath(os.path.join(self.where, *names), os.path.join(self.text, *names))  # noqa: PTH118 (text)
        path = "/".join([address.path, *(urllib.parse.quote(name, safe="/=") for name in names)])
        return _of(address._replace(path=path.strip("/")))

    def __truediv__(self, name: str) -> "StoragePath":
        return self.joined(name)

    def _filesystem(self) -> "tuple[FileSystem, str]":
        address = self._address
        assert address is not None
        return open_filesystem(address)

    def _info(self) -> "FileInfo":
        filesystem, path = self._filesystem()
        with errors_explained("look at", self.text):
            return filesystem.get_file_info(path)

    def exists(self) -> bool:
        """Reports whether there is a file or folder here."""
        if self.is_local:
            return os.path.lexists(self.where)
        return str(self._info().type.name) != "NotFound"

    def is_dir(self) -> bool:
        """Reports whether this is a folder; in an object store: whether names begin with this one and a slash."""
        if self.is_local:
            return Path(self.where).is_dir()
        return str(self._info().type.name) == "Directory"

    def is_file(self) -> bool:
        """Reports whether this is a file."""
        if self.is_local:
            return Path(self.where).is_file()
        return str(self._info().type.name) == "File"

    def stat(self) -> "Entry":
        """Returns size and time of a file or folder; FileNotFoundError when there is none."""
        if self.is_local:
            with errors_explained("look at", self.text):
                try:
                    found = Path(self.where).stat()
                except OSError as error:
                    if error.errno not in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP):
                        raise
                    raise FileNotFoundError(f"{self.text} does not exist") from None
            return Entry(self, Path(self.where).is_dir(), found.st_size, found.st_mtime_ns)
        info = self._info()
        if info.type.name == "NotFound":
            raise FileNotFoundError(f"{self.text} does not exist")
        return _entry(self, info)

    def sizes(self) -> tuple[int, int]:
        """Returns size and time of change as `stat` does, zeros when there is nothing (a link to nothing)."""
        try:
            found = self.stat()
        except FileNotFoundError:
            return 0, 0
        return found.size, found.changed

    def size(self) -> int:
        """Returns the size of a file in bytes; FileNotFoundError when there is none."""
        return self.stat().size

    def entries(self, *, recursive: bool = False) -> "list[Entry]":
        """Lists a folder, sorted by the bytes of the paths; nothing when there is none.

        `recursive` lists the folders within it too, behind symbolic links as well.
        """
        found = self._local_entries(recursive, ()) if self.is_local else self._remote_entries(recursive)
        return sorted(found, key=lambda entry: entry.place.path.encode("utf-8", "surrogateescape"))

    def _local_entries(self, recursive: bool, above: tuple[Path, ...]) -> "Iterator[Entry]":
        if recursive:
            own = Path(self.where).resolve()
            if own in above:  # a link back to a folder that it lies in
                return
            above = (*above, own)
        with errors_explained("list", self.text):
            try:
                names = os.listdir(self.where)  # noqa: PTH208 (names, not paths)
            except (FileNotFoundError, NotADirectoryError):
                return
            for name in names:
                place = self / name
                # A link to nothing, or what went in the meantime, is listed: opening it will say so.
                entry = Entry(place, place.is_dir(), *place.sizes())
                yield entry
                if recursive and entry.is_dir:
                    yield from place._local_entries(recursive, above)

    def _remote_entries(self, recursive: bool) -> "Iterator[Entry]":
        from pyarrow.fs import FileSelector

        filesystem, path = self._filesystem()
        with errors_explained("list", self.text):
            found = filesystem.get_file_info(FileSelector(path, allow_not_found=True, recursive=recursive))
        prefix = path.rstrip("/") + "/" if path else ""
        for info in found:
            yield _entry(self.joined(info.path.removeprefix(prefix).strip("/")), info)

    def open_seekable(self) -> BinaryIO:
        """Opens a file for Python's own readers, which seek and read in small pieces."""
        if self.is_local:
            return Path(self.where).open("rb")
        return io.BufferedReader(cast(Any, self.open_input()), _BUFFER_BYTES)

    def open_input(self) -> "pa.NativeFile":
        """Opens a file for reading at any place in it; FileNotFoundError when there is none."""
        import pyarrow as pa

        with errors_explained("read", self.text):
            if self.is_local:
                # By the bytes of its name: as text, a name that is not UTF-8 would be refused.
                return pa.OSFile(os.fsencode(self.where))
            filesystem, path = self._filesystem()
            return filesystem.open_input_file(path)

    def blame(self, error: Exception) -> None:
        """Raises an EnvironmentFault when reading failed because the filesystem cannot be reached any more.

        A Parquet reader cannot distinguish that from a damaged file.
        """
        if isinstance(error, OSError) and not self.is_local:
            self._info()

    def read_bytes(self) -> bytes:
        """Reads a whole file; FileNotFoundError when there is none."""
        if self.is_local:
            with errors_explained("read", self.text):
                return Path(self.where).read_bytes()
        with self.open_input() as file, errors_explained("read", self.text):
            return bytes(file.read())

    @contextlib.contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Yields an open binary file; this place has it when the block ends well, and is untouched when it does not.

        A local file is written beside its place and renamed; its folder is made, but none above it. For a URL the
        content is buffered until it is complete, and sent at once: readers never see a part of it.
        """
        if self.is_local:
            with self._writing_local() as file:
                yield file
            return
        with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as buffer:
            yield cast(BinaryIO, buffer)
            self._send(buffer)

    @contextlib.contextmanager
    def _writing_local(self) -> Iterator[BinaryIO]:
        path = Path(self.where)
        partial = partial_beside(path)
        try:
            with errors_explained("write", self.text), _in_a_folder(path):
                # Not those above: a cancelled task would make a removed output again.
                path.parent.mkdir(exist_ok=True)
                file = partial.open("wb")
            try:
                # Closing writes what is buffered, and can fail as any write can.
                with file:
                    yield file
            except OSError as error:
                if error.filename is not None:  # that of another file
                    raise
                with errors_explained("write", self.text):
                    raise
            with errors_explained("write", self.text):
                partial.replace(path)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink()

    def _send(self, buffer: Any) -> None:
        import mmap

        address = self._address
        assert address is not None
        filesystem, path = self._filesystem()
        size = buffer.seek(0, os.SEEK_END)
        buffer.seek(0)
        with contextlib.ExitStack() as closing, errors_explained("write", self.text):
            content: Any = buffer.read() if size <= _MEMORY_BYTES else None
            if content is None:
                content = closing.enter_context(mmap.mmap(buffer.fileno(), 0, access=mmap.ACCESS_READ))
            if address.has_folders:
                filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            with filesystem.open_output_stream(path, compression=None) as file:
                # One call: an interrupt between two would leave, once closed, a part that looks like the whole.
                file.write(content)

    def remove(self) -> None:
        """Removes a file, if there is one."""
        with contextlib.suppress(FileNotFoundError), errors_explained("remove", self.text):
            if self.is_local:
                Path(self.where).unlink()
            else:
                filesystem, path = self._filesystem()
                filesystem.delete_file(path)

    def remove_tree(self) -> None:
        """Removes a folder with all that it holds, if there is one."""
        with contextlib.suppress(FileNotFoundError), errors_explained("remove", self.text):
            if self.is_local:
                shutil.rmtree(self.where)
            else:
                filesystem, path = self._filesystem()
                filesystem.delete_dir(path)


@contextlib.contextmanager
def _in_a_folder(path: Path) -> Iterator[None]:
    """Raises an EnvironmentFault when the folder of a file that is written is not there."""
    try:
        yield
    except FileNotFoundError:
        raise EnvironmentFault(
            f"cannot write {path}: the output's folder is not there",
            "was it removed? on a cluster, name an output that all machines see: a URL, or a shared disk",
        ) from None


class Entry(NamedTuple):
    """What a folder holds: the place, whether it is a folder, its size in bytes, its last change (ns since 1970)."""

    place: StoragePath
    is_dir: bool
    size: int
    changed: int


def _entry(place: StoragePath, info: "FileInfo") -> Entry:
    # Whole seconds: S3 has a finer time in a listing than for the file alone.
    return Entry(place, info.type.name == "Directory", info.size or 0, (info.mtime_ns or 0) // 10**9 * 10**9)


def _of(address: Address) -> StoragePath:
    return StoragePath(address.url, address.shown)


def locate(text: str | Path | StoragePath) -> StoragePath:
    """Makes a place from a path (relative to the working directory, or absolute) or a URL (`file://` is a path).

    Opens nothing. UsageError for a `file://` of another machine, EnvironmentFault where the working directory is gone.
    """
    if isinstance(text, StoragePath):
        return text
    given = os.fspath(text)
    address = split_url(given)
    if address is None:
        try:
            absolute = os.path.abspath(given)  # noqa: PTH100 (resolve() would follow a symbolic link)
        except FileNotFoundError:
            raise EnvironmentFault(
                f"{given}: the current directory does not exist any more", "change to one that does"
            ) from None
        return StoragePath(absolute, os.fspath(Path(given)))
    if address.scheme != "file":
        return _of(address)
    if address.store not in ("", "localhost"):
        raise UsageError(f"{given}: a file of another machine ({address.store})", "a local one is file:///path")
    path = os.fsdecode(urllib.parse.unquote_to_bytes(f"/{address.path}"))
    return StoragePath(path, path)
