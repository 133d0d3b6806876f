"""Hadoop's file system over HTTP: `webhdfs://NAMENODE:9870/path`.

A small file is written under a name of its own and renamed, which the name node does in one step
and refuses where the name is taken. Data files are written under their final names, which no
other writer has: what is named in a manifest is closed by then. Files are never appended to.

Who writes is said by the option `user`, or HADOOP_USER_NAME, or is the system's user (Hadoop's
simple authentication; Kerberos is not supported).
"""

import getpass
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from ottla.base.errors import OttlaError
from ottla.lake.stores import aged_hold
from ottla.lake.stores.part_reader import read_in_parts
from ottla.lake.stores.probing import prove_put_if_absent
from ottla.lake.stores.put_until_known import StoreUnreachable, put_until_known
from ottla.lake.stores.store import StoredFile, StoreWriter
from ottla.lake.stores.webhdfs_calls import Answer, NameNode, NameTaken, Upload

_CHUNK_BYTES = 1 << 20
_REMEDY = "choose another Hadoop cluster, or a folder"
# Blocks are forced to the data nodes' disks when they are closed.
_CREATE = {"op": "CREATE", "createflag": "CREATE,SYNC_BLOCK", "overwrite": "false"}


class _HdfsWriter:
    """A file that is sent to a data node while it is written."""

    def __init__(self, store: "WebHdfsStore", path: str) -> None:
        self._store = store
        self._path = path
        self._upload: Upload | None = None  # Begun with the first chunk.
        self._waiting = bytearray()
        self._size = 0
        self.closed = False

    def write(self, content: bytes) -> int:
        self._waiting += content
        self._size += len(content)
        if len(self._waiting) >= _CHUNK_BYTES:
            self._send()
        return len(content)

    def _send(self) -> Upload:
        if self._upload is None:
            self._upload = self._store.name_node().begin(self._store.full(self._path), _CREATE)
        self._upload.send(bytes(self._waiting))
        self._waiting.clear()
        return self._upload

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def finish(self, *, durable: bool = True) -> None:  # noqa: ARG002  # Always durable.
        self.closed = True
        try:
            self._send().end()
        except StoreUnreachable:
            # The last answer may be lost: no other writer has this name.
            with suppress(OSError, OttlaError):
                if self._store.is_closed(self._path) and self._store.size(self._path) == self._size:
                    return
            raise

    def discard(self) -> None:
        self.closed = True
        if self._upload is None:
            return
        # A data node that is left in the middle would make the file later, after its removal.
        with suppress(OSError, OttlaError):
            self._upload.end()
        with suppress(OSError, OttlaError):
            self._store.remove(self._path)


@dataclass(slots=True)
class WebHdfsStore:
    """The folder that a `webhdfs:` URL means."""

    url: str  # Without a slash at its end.
    host: str
    port: int
    folder: str  # From the root, decoded: `/lake/flights`.
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def lists_all_at_once(self) -> bool:
        return True

    def name_node(self) -> NameNode:
        user = self.options.get("user") or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        return NameNode(self.host, self.port, user)

    def full(self, path: str) -> str:
        """The path from the file system's root."""
        return f"{self.folder}/{path}".rstrip("/") or "/"

    def address(self, path: str) -> str:
        return f"{self.url}/{path}"

    def prepare(self, folders: Iterable[str]) -> None:
        made = list(folders)
        for folder in made:
            self._call("PUT", folder, {"op": "MKDIRS"})
        if self.names(made[0]):
            return  # Proven before the first file was put there.
        prove_put_if_absent(self, made[0], "a taken name was given away again", _REMEDY)

    def top(self) -> list[str]:
        return self.names("")

    def names(self, folder: str, after: str = "") -> list[str]:
        found = (str(one["pathSuffix"]) for one in self._statuses(folder))
        return [name for name in found if name > after and not _is_draft(name)]

    def files(self, folder: str) -> Iterator[StoredFile]:
        for one in self._statuses(folder):
            path = folder + one["pathSuffix"]
            if one["type"] == "DIRECTORY":
                yield from self.files(f"{path}/")
            elif not _is_draft(one["pathSuffix"]):
                yield StoredFile(path, one["length"], one["modificationTime"])

    def _statuses(self, folder: str) -> list[dict[str, Any]]:
        try:
            answer = self._call("GET", folder, {"op": "LISTSTATUS"}).json()
        except FileNotFoundError:
            return []
        found: list[dict[str, Any]] = answer["FileStatuses"]["FileStatus"]
        return found

    def create(self, path: str) -> StoreWriter:
        return _HdfsWriter(self, path)

    def put_if_absent(self, path: str, content: bytes) -> bool:
        return put_until_known(
            self.address(path),
            content,
            lambda: self._put(path, content, "NONE"),
            lambda: self.read(path),
        )

    def replace(self, path: str, content: bytes) -> None:
        self._put(path, content, "OVERWRITE")

    def _put(self, path: str, content: bytes, rename: str) -> bool:
        """Write a draft, and rename it; False where the name is taken."""
        folder, slash, _ = path.rpartition("/")
        draft = f"{folder}{slash}.{uuid.uuid4().hex}.tmp"
        try:
            upload = self.name_node().begin(self.full(draft), _CREATE)
            upload.send(content)
            upload.end()
            query = {"op": "RENAME", "destination": self.full(path), "renameoptions": rename}
            self._call("PUT", draft, query)
        except BaseException as error:
            with suppress(OSError, OttlaError):
                self.remove(draft)
            if isinstance(error, NameTaken):
                return False
            raise
        return True

    def read(self, path: str) -> bytes:
        return self._call("GET", path, {"op": "OPEN"}).content

    def _read_part(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on; all of them have to be there."""
        query = {"op": "OPEN", "offset": str(offset), "length": str(length)}
        return self._call("GET", path, query).content

    def open(self, path: str) -> BinaryIO:
        return read_in_parts(
            self.size(path), lambda offset, length: self._read_part(path, offset, length)
        )

    def size(self, path: str) -> int:
        return int(self._status(path)["length"])

    def is_closed(self, path: str) -> bool:
        """Whether the file's writer has ended it."""
        answer = self._call("GET", path, {"op": "GET_BLOCK_LOCATIONS"}).json()
        return not answer["LocatedBlocks"]["isUnderConstruction"]

    def _status(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", path, {"op": "GETFILESTATUS"}).json()
        status: dict[str, Any] = found["FileStatus"]
        return status

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._call("DELETE", path, {"op": "DELETE"})

    def hold(self, path: str) -> AbstractContextManager[None]:
        self._call("PUT", path.rpartition("/")[0], {"op": "MKDIRS"})
        return aged_hold.hold(self, path)

    def is_held(self, path: str) -> bool:
        try:
            return aged_hold.is_fresh(int(self._status(path)["modificationTime"]))
        except FileNotFoundError:
            return False

    def _call(self, method: str, path: str, query: Mapping[str, str]) -> Answer:
        return self.name_node().call(method, self.full(path), query)


def _is_draft(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")
