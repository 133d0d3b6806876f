"""Finds the catalog of an Iceberg table and the table's name in it.

Both come from options with the prefix `catalog.`: `catalog.name`, `catalog.table`
(`NAMESPACE.NAME`), and the options of pyiceberg's catalogs, such as `catalog.type` and
`catalog.uri`. For a table in a local folder the default is a SQLite file in that folder. The first
load stores the options in the table's folder, without secrets, so that later loads need not repeat
them.
"""

import io
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import sync_folder
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import FileStore


class _Written(threading.local):
    """The paths of files that this thread writes; None unless they are being collected."""

    paths: list[Path] | None = None


_written = _Written()


@contextmanager
def paths_written() -> Iterator[list[Path]]:
    """Collect the paths of files that this thread begins to write within the context."""
    before, _written.paths = _written.paths, []
    try:
        yield _written.paths
    finally:
        _written.paths = before


class _SyncedStream(io.BufferedWriter):
    """An output stream of pyiceberg. The file is complete and durable after closing, or absent."""

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        super().__init__(io.FileIO(path, "wb" if overwrite else "xb"))
        self._path = path

    def close(self) -> None:
        if self.closed:
            return
        try:
            self.flush()
            os.fsync(self.fileno())
            super().close()
            sync_folder(self._path.parent)
        except OSError:
            # Nothing else would remove a partly written file.
            self._path.unlink(missing_ok=True)
            with suppress(OSError):
                super().close()
            raise


class _SyncedFile(PyArrowFile):  # type: ignore[misc]
    def __init__(self, location: str, path: str, made_by: "SyncedFileIO") -> None:
        super().__init__(location, path, made_by.fs_by_scheme("file", None))
        self._local = Path(path)
        self._made_by = made_by

    def create(self, overwrite: bool = False) -> OutputStream:
        self._local.parent.mkdir(parents=True, exist_ok=True)
        self._made_by.written.append(self._local)
        if _written.paths is not None:
            _written.paths.append(self._local)
        return _SyncedStream(self._local, overwrite=overwrite)


class SyncedFileIO(PyArrowFileIO):  # type: ignore[misc]
    """Writes local files and forces them to disk. pyiceberg finds it by name (`py-io-impl`).

    Without it, a power failure may leave a catalog that names an empty file. `written` has the
    paths of all files that it created.
    """

    def __init__(self, properties: Any = None) -> None:
        super().__init__(properties or {})
        self.written: list[Path] = []

    def new_output(self, location: str) -> Any:
        return _SyncedFile(location, self.parse_location(location, self.properties)[2], self)

    def delete(self, location: Any) -> None:
        """Delete a file; a missing file is no error, as in object stores.

        Another writer, an expiry or the handling of a full disk may have removed it first. For each
        such file, pyiceberg would print a warning although nothing is wrong.
        """
        with suppress(FileNotFoundError):
            super().delete(location)


_OWN_CATALOG = "_ottla/catalog.db"
_SECRET = re.compile(r"secret|token|password|credential|access-key|account-key|sas", re.IGNORECASE)
# Names of the same setting in object_store and in pyiceberg.
_VARIABLES = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_REGION")
_FILE_OPTIONS = {
    "aws_endpoint": "s3.endpoint",
    "aws_endpoint_url": "s3.endpoint",
    "aws_region": "s3.region",
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "google_service_account": "gcs.oauth2.token",
    "azure_storage_account_name": "adls.account-name",
    "azure_storage_account_key": "adls.account-key",
}


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """A catalog and a table in it. Without properties, the catalog is in the table's folder."""

    name: str
    table: tuple[str, ...]
    # May include passwords.
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    # How pyiceberg accesses files; never stored.
    file_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_own(self) -> bool:
        return not self.properties

    def location(self, store: FileStore) -> str:
        """Return the table's root as Iceberg writes it."""
        return f"file://{store.root}" if isinstance(store, LocalStore) else store.url.rstrip("/")

    def is_at(self, location: str, store: FileStore) -> bool:
        """Return whether `location`, as a table's metadata has it, is the root of `store`."""
        if not isinstance(store, LocalStore):
            return location.rstrip("/") == self.location(store)
        place = Path(location.removeprefix("file://"))
        return place == Path(store.root) or (place.exists() and place.samefile(store.root))

    def may_exist(self, store: FileStore) -> bool:
        """Return False if the catalog is a file that the first commit has yet to create."""
        return not self.is_own or _OWN_CATALOG.rpartition("/")[2] in store.names("_ottla/")

    def catalog(self, store: FileStore) -> Catalog:
        """Open the catalog. Raises OttlaError and pyiceberg's errors."""
        wanted = {**self.file_options, **self.properties}
        if self.is_own:
            if not isinstance(store, LocalStore):
                raise _no_catalog(store.url)
            wanted |= {"type": "sql", "uri": f"sqlite:///{store.root / _OWN_CATALOG}?timeout=60"}
        if isinstance(store, LocalStore):
            wanted["py-io-impl"] = f"{SyncedFileIO.__module__}.{SyncedFileIO.__qualname__}"
        try:
            return load_catalog(self.name, **wanted)
        except SQLAlchemyError:
            # If two first commits create the catalog's tables at once, one of them finds them
            # existing.
            return load_catalog(self.name, **wanted)

    def stored(self) -> dict[str, Any]:
        """Return the settings to store for later loads, without secrets."""
        kept = {
            key: _without_password(value)
            for key, value in self.properties.items()
            if not _SECRET.search(key)
        }
        return {"catalog": self.name, "table": list(self.table), "properties": kept}

    @classmethod
    def of(
        cls,
        store: FileStore,
        options: Mapping[str, str],
        file_options: Mapping[str, str],
        stored: Mapping[str, Any] | None = None,
    ) -> "CatalogSettings":
        """Return the catalog that the options name, by default the one that the first load stored.

        Raises OttlaError if a table outside of local folders has no catalog.
        """
        # The storage library reads these options too; pyiceberg names them differently.
        reached = {name.lower(): os.environ[name] for name in _VARIABLES if name in os.environ}
        reached |= {key.lower(): value for key, value in file_options.items()}
        given = dict(options)
        name, table = given.pop("name", None), given.pop("table", None)
        if stored is None:
            stored = {"catalog": "ottla", "table": ["ottla", _table_name(store)], "properties": {}}
        properties = {**stored["properties"], **given}
        if not properties and not isinstance(store, LocalStore):
            raise _no_catalog(store.url)
        return cls(
            name or stored["catalog"],
            tuple(table.split(".")) if table else tuple(stored["table"]),
            properties,
            {word: reached[key] for key, word in _FILE_OPTIONS.items() if key in reached},
        )


def _no_catalog(url: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"an Iceberg table in {url} needs a catalog that all its writers share: --store-option "
        "catalog.type=rest --store-option catalog.uri=…, or another of pyiceberg's",
    )


def _table_name(store: FileStore) -> str:
    """Return a table name derived from the last part of the root."""
    last = store.url.rstrip("/").rpartition("/")[2]
    return re.sub(r"\W", "_", last) or "table"


def _without_password(value: str) -> str:
    parts = urlsplit(value)
    if "@" not in parts.netloc:
        return value
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}@{host}"))


_FOLDER = "metadata/"
_HINT = f"{_FOLDER}version-hint.text"
_NUMBERED = re.compile(r"v(\d+)\.metadata\.json")
# Keep the previous file: a reader that has just read the hint may still open it.
_HINTS_KEPT = 2


def write_hint(store: LocalStore, table: Table) -> None:
    """Write the hint file that names the current metadata, for readers without the catalog.

    Errors are ignored: the commit is valid without the hint.
    """
    current = PurePosixPath(table.metadata_location).name
    number = int(current.partition("-")[0])
    with suppress(OSError, OttlaError):
        with suppress(FileExistsError):
            folder = store.root / _FOLDER
            os.link(folder / current, folder / f"v{number}.metadata.json")
        store.replace(_HINT, str(number).encode())
        numbered = map(_NUMBERED.fullmatch, store.names(_FOLDER))
        for one in [each for each in numbered if each and int(each[1]) <= number - _HINTS_KEPT]:
            store.remove(_FOLDER + one[0])
