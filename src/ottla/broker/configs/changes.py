"""Notifies brokers of changed settings by sequence nodes under `/config/changes`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.coordination.interface.store import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Set,
    Store,
    StoreError,
    Watch,
)
from ottla.metadata import paths
from ottla.metadata.nodes import decode_configs, encode_configs
from ottla.metadata.notices import decode_config_change, encode_config_change
from ottla.security.stored import CONFIG_ACLS

_log = logging.getLogger(__name__)

_PREFIX = "config_change_"
# A broker disconnected from the store for longer rereads everything on reconnection.
_KEPT_MS = 15 * 60_000
_PAUSE_S = 0.1

OnChanged = Callable[[str], Awaitable[None]]


def change_notice(config_path: str, now_ms: int) -> Create:
    """Return the operation that notifies other brokers; include it in the change of `/config/…`."""
    entity = config_path.removeprefix("/config/")
    data = encode_config_change(entity, now_ms)
    return Create(f"{paths.CONFIG_CHANGES}/{_PREFIX}", data, sequential=True)


class ConfigChanges:
    """Calls `on_changed` with each entity whose settings changed, one at a time.

    Changes before `start` are not reported, so read the settings after it. `reload` is called if
    notices were deleted before this broker read them. The data of `/config/changes` is the name of
    the last deleted notice.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        on_changed: OnChanged,
        reload: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_changed = on_changed
        self._reload = reload
        self._last = ""
        self._has_missed = False
        self._rung = asyncio.Event()
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start watching for notices, and remember the last existing one."""
        self._watch = self._store.watch_children(paths.CONFIG_CHANGES, self._rung.set)
        names = await self._store.children(paths.CONFIG_CHANGES)
        self._last = max([*names, (await self._deleted())[0]])

    def follow(self) -> None:
        """Start reporting changes made since `start`."""
        self._rung.set()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    @property
    def last(self) -> str:
        """Return the name of the last notice that was read or deleted."""
        return self._last

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        while True:
            await self._rung.wait()
            self._rung.clear()
            try:
                await self._look()
            except StoreError as error:
                _log.warning("cannot read changed settings, trying again: %s", error.message)
                await asyncio.sleep(_PAUSE_S)
                self._rung.set()
            except Exception:  # noqa: BLE001  # The supervisor of this task.
                _log.exception("taking over changed settings failed unexpectedly")
                await asyncio.sleep(_PAUSE_S)

    async def _look(self) -> None:
        read_until = self._last
        names = await self._store.children(paths.CONFIG_CHANGES)
        for name in names:
            path = f"{paths.CONFIG_CHANGES}/{name}"
            if name <= self._last:
                continue
            node = await self._store.get(path)
            if node is not None:
                await self._notify(path, node.data)
            self._last = name
        deleted, version = await self._deleted()
        self._last = max(self._last, deleted)
        self._has_missed = self._has_missed or deleted > read_until
        if self._has_missed:
            _log.warning(
                "this broker did not reach the store for so long that notices of changes were"
                " deleted meanwhile: it reads all settings, users and ACLs again"
            )
            await self._reload()
            self._has_missed = False
        await self._forget(names, version)

    async def _deleted(self) -> tuple[str, int]:
        """Return the last deleted notice, and the version of the node that contains its name."""
        node = await self._store.get(paths.CONFIG_CHANGES)
        return ("", 0) if node is None else (node.data.decode("ascii", "replace"), node.version)

    async def _notify(self, path: str, data: bytes) -> None:
        try:
            entity, _ = decode_config_change(path, data)
            await self._on_changed(entity)
        except StoreError:
            raise
        except OttlaError as error:
            _log.error(
                "changed settings are invalid and do not apply; set them again: %s", error.message
            )

    async def _forget(self, names: list[str], version: int) -> None:
        """Delete notices that all brokers had time to read; the first recent one ends the scan.

        `version` is the version of `/config/changes`. Other brokers may be deleting notices, too.
        """
        oldest_ms = self._clock.now_ms() - _KEPT_MS
        for name in names:
            path = f"{paths.CONFIG_CHANGES}/{name}"
            node = await self._store.get(path)
            if node is None:
                continue
            if decode_config_change(path, node.data)[1] > oldest_ms:
                return
            mark = Set(paths.CONFIG_CHANGES, name.encode(), version)
            try:
                made, _ = await self._store.multi([mark, Delete(path)])
            except (NoNode, BadVersion):
                return
            assert isinstance(made, int), "a set gives the node's new version"
            version = made


# Returns new settings for the stored ones, which are None if there are none yet; returns None to
# leave them unchanged. Raises OttlaError.
Decide = Callable[[Mapping[str, str] | None], Mapping[str, str] | None]


# Returns the operations that record a change for an undo, from the settings before and after it.
Record = Callable[[Mapping[str, str], Mapping[str, str]], Sequence[Operation]]


async def change(
    store: Store, path: str, decide: Decide, clock: Clock, record: Record = lambda *_: ()
) -> dict[str, str] | None:
    """Store the result of `decide` and notify other brokers; return it, or None if unchanged.

    `decide` receives the settings in the store, because this broker's image may lack a recent
    change by another broker; after a conflict it is called again. Raises OttlaError.
    """
    while True:
        node = await store.get(path)
        before = None if node is None else _decoded(path, node.data)
        after = decide(before)
        if after is None:
            return None
        data = encode_configs(after)
        write: Operation = Create(path, data) if node is None else Set(path, data, node.version)
        try:
            notice = change_notice(path, clock.now_ms())
            await store.multi([write, notice, *record(before or {}, after)])
        except (BadVersion, NodeExists):
            continue
        except NoNode:
            if node is None:
                raise
            continue
        return dict(after)


def _decoded(path: str, data: bytes) -> Mapping[str, str]:
    """Decode a node; return no settings for unreadable data, so that a change repairs it.

    An empty node is only the parent of other nodes.
    """
    if not data:
        return {}
    try:
        return decode_configs(path, data)
    except OttlaError as error:
        _log.error("settings that cannot be read: %s", error.message)
        return {}


_CONFIG = "/config"


def reading_all(
    store: Store, on_changed: OnChanged, loads: Sequence[Callable[[], Awaitable[None]]]
) -> Callable[[], Awaitable[None]]:
    """Return a function that applies each settings node as if it had changed.

    Settings nodes are never deleted, only emptied. Nodes of ACLs and tokens are deleted, so `loads`
    reread all of them. The function raises StoreError.
    """

    async def read_all() -> None:
        for load in loads:
            await load()
        for path, node in (await store.subtree(_CONFIG)).items():
            # Nodes without data are only parents of others.
            if not node.data or path.startswith((CONFIG_ACLS, paths.CONFIG_CHANGES)):
                continue
            try:
                await on_changed(path.removeprefix(f"{_CONFIG}/"))
            except StoreError:
                raise
            except OttlaError as error:
                _log.error("settings at %s do not apply; set them again: %s", path, error.message)

    return read_all
