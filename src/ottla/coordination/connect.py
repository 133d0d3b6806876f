"""Chooses the store by its address, the setting `coordination.connect`."""

import os
from urllib.parse import urlsplit

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import make_private_folder
from ottla.coordination.interface.client import StoreAccess
from ottla.coordination.interface.errors import StoreUnavailable
from ottla.coordination.interface.store import Store
from ottla.coordination.memory.memory import MemoryStore
from ottla.coordination.sqlite.sqlite import SqliteStore

_CONNECTION_TIMEOUT_MS = 15_000


async def connect(
    address: str,
    *,
    access: StoreAccess | None = None,
    timeout_ms: int = _CONNECTION_TIMEOUT_MS,
) -> Store:
    """Connect a client to the store at `address`.

    `sqlite:///path/of/the/file` (its folder is made), `zookeeper://host:port,host:port/path`, or
    `memory:`, a new store in memory. `access` is for ZooKeeper, and says whose data is
    wiped out of the file when it is replaced; `timeout_ms` is how long to wait
    for the first answer.

    Raises StoreUnavailable, StoreDenied, StoreDamaged; OttlaError for an address of no kind.
    """
    parts = urlsplit(address)
    if parts.scheme == "sqlite" and parts.path.startswith("/") and not parts.netloc:
        folder = os.path.dirname(parts.path)
        try:
            make_private_folder(folder)
        except OSError as error:
            raise StoreUnavailable(
                f"the store's folder {folder} cannot be made ({error}): make it, or name another in"
                " coordination.connect"
            ) from error
        sensitive = () if access is None else access.sensitive
        return await SqliteStore.open(parts.path, sensitive)
    if parts.scheme == "zookeeper" and parts.netloc:
        # The library is an optional extra, and slow to import.
        try:
            from ottla.coordination.zookeeper.store import ZookeeperStore  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"coordination.connect={address} needs the library {error.name}: install"
                " `ottla[zookeeper]`",
            ) from error

        return await ZookeeperStore.open(
            parts.netloc,
            chroot=parts.path.rstrip("/"),
            access=access or StoreAccess(),
            timeout_ms=timeout_ms,
        )
    if parts.scheme == "memory":
        return MemoryStore()
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"coordination.connect={address} names no store: write sqlite:///path/of/the/file,"
        " zookeeper://host:port,host:port/path, or memory:",
    )
