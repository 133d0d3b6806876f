"""Object stores by obstore: S3 and compatible stores, Google Cloud Storage, Azure Blob Storage.

An object becomes visible as a whole when its PUT or its multipart upload is complete.
`put_if_absent` is a conditional PUT (in S3, with If-None-Match), which the store checks atomically.
obstore finds credentials in the environment: in variables, a web identity, or the role of a machine
or task. They never appear in a message.

A request may succeed although its answer is lost. `put_if_absent` is then retried, and the object's
content shows which writer wrote it.
"""

import io
import platform
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, BinaryIO, ClassVar, Final, cast

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.errors import object_errors, short_cause
from ottla.lake.store.retries import put_until_known
from ottla.lake.store.store import (
    StoredFile,
    StoreWriter,
    is_fresh_hold,
    no_put_if_absent,
)

# The size of a part of a multipart upload, and how many are sent at once. S3 allows 10,000 parts,
# so an object has at most 80 GB.
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_NAMES_AT_ONCE = 1000
# Read at least this many bytes at a time, because each read waits for an answer.
_READ_BYTES = 4 << 20
# Options of the connection. All other options are for the store.
_CLIENT_OPTIONS: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "read_timeout",
        "timeout",
        "user_agent",
    }
)
_PREFIX = re.compile("^(aws|azure|google)_")
_REMEDY = (
    "choose a store that checks them (Amazon S3, Google Cloud Storage, Azure, MinIO, Ceph, "
    "Cloudflare R2), or a folder"
)


def _obstore() -> ModuleType:
    try:
        import obstore  # noqa: PLC0415  # An extra.
    except ImportError:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "tables in object stores need a package that is not installed: pip install "
            "'ottla[lake]'",
        ) from None
    library: ModuleType = obstore
    return library


class _ObjectWriter(StoreWriter):
    """An object that is being written. Its parts are sent while it is written."""

    def __init__(self, store: "ObjectStore", path: str) -> None:
        self._store = store
        self._path = path
        self._size = 0
        self._writer = _obstore().open_writer(
            store.client(), path, buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
        )
        self._writer.__enter__()

    def write(self, content: bytes) -> int:
        with self._store.errors_of(self._path):
            self._writer.write(bytes(content))
        self._size += len(content)
        return len(content)

    def tell(self) -> int:
        return self._size

    def finish(self, *, durable: bool = True) -> None:  # noqa: ARG002  # Always durable.
        self.closed = True
        with self._store.errors_of(self._path):
            try:
                self._writer.close()
            except Exception:
                # The upload may have succeeded although its answer was lost. As no other writer has
                # this name, an object of this size is this one.
                with suppress(Exception):
                    if self._store.size(self._path) == self._size:
                        return
                raise

    def discard(self) -> None:
        self.closed = True
        stop = InterruptedError("discarded")
        # An exception makes obstore abort the upload and remove its parts.
        with suppress(Exception):
            self._writer.__exit__(InterruptedError, stop, None)
        with suppress(Exception):
            self._store.remove(self._path)


class _PartReader(io.RawIOBase):
    """A seekable object of `size` bytes; `read_part` returns some bytes from an offset on."""

    def __init__(self, size: int, read_part: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._read_part = read_part
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        content = memoryview(self._read_part(self._at, length))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


@dataclass(slots=True)
class ObjectStore:
    """The objects below a URL: `s3://bucket/prefix`, `gs://`, `az://`, `abfss://`."""

    url: str  # Percent-encoded, and without a final slash.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # May include credentials.
    _client: Any = field(default=None, repr=False, compare=False)
    lists_all_at_once: ClassVar = False

    def __reduce__(self) -> tuple[type["ObjectStore"], tuple[str, dict[str, str]]]:
        return ObjectStore, (self.url, dict(self.options))

    def client(self) -> Any:
        """Return obstore's client, which each process creates on first use."""
        if self._client is None:
            self._client = _client_of(self.url, self.options)
        return self._client

    def errors_of(self, path: str) -> AbstractContextManager[None]:
        """Convert errors of the store to OttlaError, FileNotFoundError or OSError."""
        return object_errors(self.url, path)

    def address(self, path: str) -> str:
        return f"{self.url}/{path}"

    def prepare(self, folders: Iterable[str]) -> None:
        """Check that conditional writes work. No folders are created, as the store has none."""
        path = f"{next(iter(folders))}.probe-{uuid.uuid4().hex}"
        try:
            first = self.put_if_absent(path, b"first")
            second = first and self.put_if_absent(path, b"second")
        except NotImplementedError as error:
            raise no_put_if_absent(self.url, str(error), _REMEDY) from error
        finally:
            with suppress(OSError, OttlaError):
                self.remove(path)
        if not first or second:
            problem = "its store gave a taken name away again, and so ignores conditions of a PUT"
            raise no_put_if_absent(self.url, problem, _REMEDY)

    def top(self) -> list[str]:
        with self.errors_of(""):
            found = _obstore().list_with_delimiter(self.client())
        return [*found["common_prefixes"], *(one["path"] for one in found["objects"])]

    def names(self, folder: str, after: str = "") -> list[str]:
        start = len(folder)
        paths = (one.path for one in self._files(folder, folder + after if after else None))
        return [path[start:] for path in paths if "/" not in path[start:]]

    def files(self, folder: str) -> Iterator[StoredFile]:
        return self._files(folder, None)

    def _files(self, folder: str, after: str | None) -> Iterator[StoredFile]:
        with self.errors_of(folder):
            for page in _obstore().list(
                self.client(), folder or None, offset=after, chunk_size=_NAMES_AT_ONCE
            ):
                for one in page:
                    modified_ms = int(one["last_modified"].timestamp() * 1000)
                    yield StoredFile(one["path"], one["size"], modified_ms)

    def create(self, path: str) -> StoreWriter:
        with self.errors_of(path):
            return _ObjectWriter(self, path)

    def put_if_absent(self, path: str, content: bytes) -> bool:
        return put_until_known(
            self.address(path),
            content,
            lambda: self._create(path, content),
            lambda: self.read(path),
        )

    def _create(self, path: str, content: bytes) -> bool:
        """Send one conditional PUT; return False if the store says that the name exists."""
        library = _obstore()
        with self.errors_of(path):
            try:
                library.put(self.client(), path, content, mode="create")
            except library.exceptions.AlreadyExistsError:
                return False
        return True

    def replace(self, path: str, content: bytes) -> None:
        with self.errors_of(path):
            _obstore().put(self.client(), path, content)

    def read(self, path: str) -> bytes:
        with self.errors_of(path):
            return bytes(_obstore().get(self.client(), path).bytes())

    def open(self, path: str) -> BinaryIO:
        def part(offset: int, length: int) -> bytes:
            with self.errors_of(path):
                content: bytes = _obstore().get_range(
                    self.client(), path, start=offset, length=length
                )
            return content

        return cast("BinaryIO", io.BufferedReader(_PartReader(self.size(path), part), _READ_BYTES))

    def size(self, path: str) -> int:
        with self.errors_of(path):
            return int(_obstore().head(self.client(), path)["size"])

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError), self.errors_of(path):
            _obstore().delete(self.client(), path)

    @contextmanager
    def hold(self, path: str) -> Iterator[None]:
        self.replace(path, platform.node().encode())
        try:
            yield
        finally:
            with suppress(OSError, OttlaError):
                self.remove(path)

    def is_held(self, path: str) -> bool:
        with self.errors_of(path):
            try:
                found = _obstore().head(self.client(), path)
            except FileNotFoundError:
                return False
        return is_fresh_hold(int(found["last_modified"].timestamp() * 1000))


def _of_client(name: str) -> str:
    """Return a connection option without its prefix (`allow_http`); "" if it is another option.

    Users and other libraries write `aws_allow_http`, but obstore panics on the prefix.
    """
    plain = _PREFIX.sub("", name.lower())
    return plain if plain in _CLIENT_OPTIONS else ""


def _client_of(url: str, options: Mapping[str, str]) -> Any:
    _obstore()
    from datetime import timedelta  # noqa: PLC0415

    from obstore.exceptions import BaseError  # noqa: PLC0415
    from obstore.store import from_url  # noqa: PLC0415

    named = [(_of_client(name), name, value) for name, value in options.items()]
    of_client: dict[str, Any] = {plain: value for plain, _, value in named if plain}
    of_store = {name: value for plain, name, value in named if not plain}
    is_plain = any(v.startswith("http://") for k, v in of_store.items() if k.endswith("endpoint"))
    if "allow_http" in of_client or is_plain:
        of_client["allow_http"] = str(of_client.get("allow_http", "true")).lower() == "true"
    retries: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
    try:
        client: Any = of_client or None
        config: Any = of_store or None
        return from_url(url, config=config, client_options=client, retry_config=retries)
    except (BaseError, ValueError) as error:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"{url} can't be opened: {short_cause(error)}"
        ) from error
