"""Hadoop's file system over HTTP: `webhdfs://NAMENODE:9870/path`.

A small file is written under a temporary name and renamed, which the name node does atomically and
refuses if the name exists. A data file is written under its final name, which no other writer uses,
and is closed before a manifest names it. Files are never appended to.

The session is fsspec's: it logs in as the option `user` (by default HADOOP_USER_NAME, or the
system's user), by Kerberos, by a delegation token, or with a password. The requests are made here,
because fsspec's own file system overwrites every file that it creates, and can't rename without
overwriting.
"""

import errno
import getpass
import io
import os
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, ClassVar
from urllib.parse import quote

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.lake.store.retries import put_until_known, retried
from ottla.lake.store.store import (
    StoredFile,
    StoreUnreachable,
    StoreWriter,
    aged_hold,
    is_fresh_hold,
    prove_put_if_absent,
    read_in_parts,
)

# The options of fsspec that can be given as text.
OPTIONS = (
    *("user", "password", "token", "proxy_to", "kerberos", "use_https"),
    *("session_cert", "session_verify"),
)
_FLAGS = ("kerberos", "use_https")
_LOGINS = ("user", "token", "kerberos")
_TIMEOUT_S = 60
_TRIES = 3
# The query of a URL, with operation, user and delegation token.
_QUERY = re.compile(r"\?[^\s)'\"]*")
# A data file is collected until it is complete: in memory up to this size, then on local disk.
_IN_MEMORY_BYTES = 8 << 20
_REMEDY = "choose another Hadoop cluster, or a folder"
# Blocks are forced to the data nodes' disks when they are closed.
_CREATE = {"op": "CREATE", "createflag": "CREATE,SYNC_BLOCK", "overwrite": "false"}
_REMEDIES = {
    "AccessControlException": "give that user the right to write there, or name another one "
    "(option user, HADOOP_USER_NAME)",
    "SafeModeException": "wait until the name node has left its safe mode (hdfs dfsadmin "
    "-safemode get)",
    "StandbyException": "name the active name node in the URL",
    "NSQuotaExceededException": "raise the folder's quota",
    "DSQuotaExceededException": "raise the folder's quota",
}


class _NameTaken(OttlaError):
    """Raised if a file with that name exists already."""


class _HdfsWriter(StoreWriter):
    """A file that is sent to a data node once it is complete."""

    def __init__(self, store: "WebHdfsStore", path: str) -> None:
        self._store = store
        self._path = path
        # Closed by `finish` or `discard`.
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115

    def write(self, content: bytes) -> int:
        return self._file.write(content)

    def tell(self) -> int:
        return self._file.tell()

    def finish(self, *, durable: bool = True) -> None:  # noqa: ARG002  # Always durable.
        self.closed = True
        with self._file as file:
            size = file.tell()
            file.seek(0)
            try:
                self._store.send(self._path, file)
            except StoreUnreachable:
                # The request may have succeeded although its answer was lost. No other writer uses
                # this name, so a closed file of this size is complete.
                with suppress(OSError, OttlaError):
                    if self._store.is_closed(self._path) and self._store.size(self._path) == size:
                        return
                raise

    def discard(self) -> None:
        self.closed = True
        self._file.close()
        with suppress(OSError, OttlaError):
            self._store.remove(self._path)


@dataclass(slots=True)
class WebHdfsStore:
    """The folder that a `webhdfs:` URL names."""

    url: str  # Without a final slash.
    host: str
    port: int
    folder: str  # The decoded path from the root, such as `/lake/flights`.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # May include a password.
    _client: Any = field(default=None, repr=False, compare=False)
    lists_all_at_once: ClassVar = True

    def __reduce__(self) -> tuple[type["WebHdfsStore"], tuple[Any, ...]]:
        return WebHdfsStore, (self.url, self.host, self.port, self.folder, dict(self.options))

    def _full(self, path: str) -> str:
        """Return the path from the file system's root."""
        return f"{self.folder}/{path}".rstrip("/") or "/"

    def address(self, path: str) -> str:
        return f"{self.url}/{path}"

    def prepare(self, folders: Iterable[str]) -> None:
        made = list(folders)
        for folder in made:
            self._ask("PUT", folder, {"op": "MKDIRS"})
        if self.names(made[0]):
            return  # This was checked before the first file was written.
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
            answer = self._ask("GET", folder, {"op": "LISTSTATUS"}).json()
        except FileNotFoundError:
            return []
        found: list[dict[str, Any]] = answer["FileStatuses"]["FileStatus"]
        return found

    def create(self, path: str) -> StoreWriter:
        return _HdfsWriter(self, path)

    def send(self, path: str, content: IO[bytes]) -> None:
        """Write a new file. The name node redirects to a data node, which gets the content."""
        answer = self._ask("PUT", path, _CREATE, allow_redirects=False)
        with self._named_errors(path):
            found = self._session().session.put(
                _data_node(answer, self.address(path)),
                data=content,
                headers={"Content-Type": "application/octet-stream"},
                timeout=_TIMEOUT_S,
            )
            _require_done(found, self.address(path))

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
        """Write a temporary file and rename it; return False if the name exists."""
        folder, slash, _ = path.rpartition("/")
        draft = f"{folder}{slash}.{uuid.uuid4().hex}.tmp"
        try:
            self.send(draft, io.BytesIO(content))
            query = {"op": "RENAME", "destination": self._full(path), "renameoptions": rename}
            self._ask("PUT", draft, query)
        except BaseException as error:
            with suppress(OSError, OttlaError):
                self.remove(draft)
            if isinstance(error, _NameTaken):
                return False
            raise
        return True

    def read(self, path: str) -> bytes:
        return bytes(self._ask("GET", path, {"op": "OPEN"}).content)

    def open(self, path: str) -> BinaryIO:
        def part(offset: int, length: int) -> bytes:
            query = {"op": "OPEN", "offset": str(offset), "length": str(length)}
            return bytes(self._ask("GET", path, query).content)

        return read_in_parts(self.size(path), part)

    def size(self, path: str) -> int:
        return int(self._status(path)["length"])

    def is_closed(self, path: str) -> bool:
        """Return whether the file's writer has closed it."""
        answer = self._ask("GET", path, {"op": "GET_BLOCK_LOCATIONS"}).json()
        return not answer["LocatedBlocks"]["isUnderConstruction"]

    def _status(self, path: str) -> dict[str, Any]:
        found = self._ask("GET", path, {"op": "GETFILESTATUS"}).json()
        status: dict[str, Any] = found["FileStatus"]
        return status

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._ask("DELETE", path, {"op": "DELETE"})

    def hold(self, path: str) -> AbstractContextManager[None]:
        self._ask("PUT", path.rpartition("/")[0], {"op": "MKDIRS"})
        return aged_hold(self, path)

    def is_held(self, path: str) -> bool:
        try:
            return is_fresh_hold(int(self._status(path)["modificationTime"]))
        except FileNotFoundError:
            return False

    def _session(self) -> Any:
        """Return fsspec's file system, with session, login and URL; each process creates one."""
        if self._client is None:
            self._client = _session(self.host, self.port, self.options)
        return self._client

    def _ask(
        self, method: str, path: str, query: Mapping[str, str], *, allow_redirects: bool = True
    ) -> Any:
        """Send one request. A GET is retried if its answer is lost.

        Raises FileNotFoundError, _NameTaken, StoreUnreachable (the request may have been done), or
        OttlaError if the name node refuses it.
        """
        node = self._session()
        tries = _TRIES if method == "GET" else 1
        for attempt in retried(tries, StoreUnreachable):
            with attempt, self._named_errors(path):
                answer = node.session.request(
                    method,
                    node.url + quote(self._full(path)),
                    params={**query, **node.pars},
                    timeout=_TIMEOUT_S,
                    allow_redirects=allow_redirects,
                )
                _require_done(answer, self.address(path))
        return answer

    @contextmanager
    def _named_errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:  # Includes errors of requests.
            # A query may contain a delegation token, so hide it, and drop the cause with its text.
            why = _QUERY.sub("?…", str(error))
            raise StoreUnreachable(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self.address(path)} cannot be read or written ({type(error).__name__}: "
                f"{why}); see that the name node and the data nodes run and can be reached from "
                "the driver and from every worker",
            ) from None


def _data_node(answer: Any, address: str) -> str:
    """Return the URL to which the name node sends a write. Raises StoreUnreachable."""
    url: str | None = answer.headers.get("Location")
    if url is None:
        raise StoreUnreachable(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{address} cannot be written: the name node named no data node; see that the URL is "
            "that of a WebHDFS name node, and that a data node runs",
        )
    return url


def _session(host: str, port: int, options: Mapping[str, str]) -> Any:
    try:
        from fsspec.implementations.webhdfs import WebHDFS  # noqa: PLC0415  # An extra.

        given: dict[str, Any] = dict(options)
        given |= {name: options[name].lower() == "true" for name in _FLAGS if name in options}
        if not any(given.get(name) for name in _LOGINS):
            given["user"] = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        made = WebHDFS(host, port, skip_instance_cache=True, **given)
        # Without the option, fsspec would not verify certificates.
        made.session.verify = options.get("session_verify") or True
        return made
    except ImportError as error:
        extra = "requests-kerberos" if error.name == "requests_kerberos" else "'ottla[hdfs]'"
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"webhdfs: needs a package that is not installed ({error.name}): pip install {extra}",
        ) from None
    except ValueError as error:
        raise WrongWords(
            f"the store options of webhdfs://{host}:{port} don't fit: {error}"
        ) from None


def _require_done(answer: Any, place: str) -> None:
    if answer.status_code < 400:
        return
    try:
        found = answer.json()["RemoteException"]
        kind, message = str(found["exception"]), str(found["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        raise StoreUnreachable(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{place} cannot be read or written: the answer is HTTP status {answer.status_code}, "
            "not one of WebHDFS; see that the URL has the name node's HTTP port (mostly 9870)",
        ) from None
    if kind == "FileNotFoundException":
        raise FileNotFoundError(errno.ENOENT, "no such file", place)
    if kind == "FileAlreadyExistsException":
        raise _NameTaken(ErrorCode.KAFKA_STORAGE_ERROR, f"{place} is there already")
    remedy = _REMEDIES.get(kind, "look at the name node's log")
    # After a server error, the request may have been done.
    is_open = answer.status_code >= 500 or kind == "IOException"
    error = StoreUnreachable if is_open else OttlaError
    raise error(ErrorCode.KAFKA_STORAGE_ERROR, f"{place} is refused: {message} ({kind}); {remedy}")


def _is_draft(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")
