"""How brokers learn each other's changes of settings: sequence nodes under `/config/changes`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.coordination.store import Create, Delete, NoNode, Store, StoreError, Watch
from ottla.metadata import paths
from ottla.metadata.notices import decode_config_change, encode_config_change

_log = logging.getLogger(__name__)

_PREFIX = "config_change_"
# As in Kafka: a broker that was away for longer reads all settings when it comes back.
_KEPT_MS = 15 * 60_000
_PAUSE_S = 0.1

OnChanged = Callable[[str], Awaitable[None]]


def change_notice(config_path: str, now_ms: int) -> Create:
    """To be made together with the change of `/config/…`: makes the other brokers read it."""
    entity = config_path.removeprefix("/config/")
    data = encode_config_change(entity, now_ms)
    return Create(f"{paths.CONFIG_CHANGES}/{_PREFIX}", data, sequential=True)


class ConfigChanges:
    """Calls `on_changed` with each entity whose settings changed, one at a time.

    Changes before `start` are not reported: read the settings after it.
    """

    def __init__(self, store: Store, clock: Clock, on_changed: OnChanged) -> None:
        self._store = store
        self._clock = clock
        self._on_changed = on_changed
        self._last = ""
        self._rung = asyncio.Event()
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Remember where the changes are now."""
        self._watch = self._store.watch_children(paths.CONFIG_CHANGES, self._rung.set)
        self._last = max(await self._store.children(paths.CONFIG_CHANGES), default="")

    def follow(self) -> None:
        """Begin to report changes since `start`."""
        self._rung.set()
        self._task = asyncio.get_running_loop().create_task(self._follow())

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
        names = await self._store.children(paths.CONFIG_CHANGES)
        for name in names:
            path = f"{paths.CONFIG_CHANGES}/{name}"
            if name <= self._last:
                continue
            node = await self._store.get(path)
            if node is not None:
                await self._tell(path, node.data)
            self._last = name
        await self._forget(names)

    async def _tell(self, path: str, data: bytes) -> None:
        try:
            entity, _ = decode_config_change(path, data)
            await self._on_changed(entity)
        except StoreError:
            raise
        except OttlaError as error:
            _log.error(
                "changed settings are invalid and do not apply; set them again: %s", error.message
            )

    async def _forget(self, names: list[str]) -> None:
        """Delete notices that all brokers had time to read; the first young one ends the scan."""
        oldest_ms = self._clock.now_ms() - _KEPT_MS
        for name in names:
            path = f"{paths.CONFIG_CHANGES}/{name}"
            node = await self._store.get(path)
            if node is None:
                continue
            if decode_config_change(path, node.data)[1] > oldest_ms:
                return
            try:
                await self._store.multi([Delete(path)])
            except NoNode:
                continue
