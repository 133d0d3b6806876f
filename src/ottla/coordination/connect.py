"""Chooses the store by its address, the setting `coordination.connect`.

A new kind of store is a package beside `sqlite`, and a row of `KINDS`.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import make_private_folder
from ottla.coordination.interface.client import StoreAccess
from ottla.coordination.interface.errors import StoreUnavailable
from ottla.coordination.interface.store import Store
from ottla.coordination.memory.memory import MemoryStore
from ottla.coordination.sqlite.sqlite import SqliteStore

_CONNECTION_TIMEOUT_MS = 15_000

# Called with the parts of an address, the client's access, and how long to wait for an answer.
Open: TypeAlias = Callable[[SplitResult, StoreAccess, int], Awaitable[Store]]


@dataclass(frozen=True, slots=True)
class StoreKind:
    """One kind of store. `example` is an address of this kind."""

    scheme: str
    example: str
    open: Open
    # Whether an address must have a host. Otherwise it has only a path.
    has_host: bool = False
    # Whether brokers on several machines can share it.
    spans_machines: bool = False
    # Whether the state outlives the process that made it, so that other processes find it.
    outlives_process: bool = True


async def _open_sqlite(parts: SplitResult, access: StoreAccess, _timeout_ms: int) -> Store:
    folder = os.path.dirname(parts.path)
    try:
        make_private_folder(folder)
    except OSError as error:
        raise StoreUnavailable(
            f"the store's folder {folder} cannot be made ({error}): make it, or name another in"
            " coordination.connect"
        ) from error
    return await SqliteStore.open(parts.path, access.sensitive)


async def _open_zookeeper(parts: SplitResult, access: StoreAccess, timeout_ms: int) -> Store:
    # The library is an optional extra, and slow to import.
    try:
        from ottla.coordination.zookeeper.store import ZookeeperStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"coordination.connect={parts.geturl()} needs the library {error.name}: install"
            " `ottla[zookeeper]`",
        ) from error

    return await ZookeeperStore.open(
        parts.netloc, chroot=parts.path.rstrip("/"), access=access, timeout_ms=timeout_ms
    )


async def _open_memory(_parts: SplitResult, _access: StoreAccess, _timeout_ms: int) -> Store:
    return MemoryStore()


KINDS = (
    StoreKind("sqlite", "sqlite:///path/of/the/file", _open_sqlite),
    StoreKind(
        "zookeeper",
        "zookeeper://host:port,host:port/path",
        _open_zookeeper,
        has_host=True,
        spans_machines=True,
    ),
    StoreKind("memory", "memory:", _open_memory, outlives_process=False),
)


def kind_of(address: str) -> StoreKind | None:
    """Return the kind of store at `address`; None if this is not the address of a store."""
    parts = urlsplit(address)
    kind = next((one for one in KINDS if one.scheme == parts.scheme), None)
    if kind is None or kind.has_host != bool(parts.netloc):
        return None
    return None if kind.scheme == "sqlite" and not parts.path.startswith("/") else kind


async def connect(
    address: str,
    *,
    access: StoreAccess | None = None,
    timeout_ms: int = _CONNECTION_TIMEOUT_MS,
) -> Store:
    """Connect a client to the store at `address`. `KINDS` has an example of each kind of address.

    `access` has the login, and the paths of sensitive nodes, whose old data is wiped from the
    store's file. `timeout_ms` is how long to wait for the first answer.

    Raises StoreUnavailable, StoreDenied, StoreDamaged; OttlaError for any other kind of address.
    """
    kind = kind_of(address)
    if kind is None:
        *first, last = (one.example for one in KINDS)
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"coordination.connect={address} names no store: write {', '.join(first)}, or {last}",
        )
    return await kind.open(urlsplit(address), access or StoreAccess(), timeout_ms)
