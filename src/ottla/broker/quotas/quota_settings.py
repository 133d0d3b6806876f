"""The quotas of the cluster: reads and changes them in the store.

Every broker keeps all quotas in memory, and is notified of changes in the same way as of changed
settings.
"""

import logging
from asyncio import Lock
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.broker.configs.changes import change
from ottla.broker.undo.changes import ChangeLog
from ottla.coordination.interface.store import Operation, Store
from ottla.metadata.nodes import decode_configs
from ottla.metadata.quota_entity import QUOTA_ROOTS, QuotaEntity, quota_entity, quota_path
from ottla.metadata.undo import UNKNOWN_AUTHOR, Author, StoredChange
from ottla.quota.filter import Component, is_meant
from ottla.quota.table import (
    Limits,
    QuotaKey,
    QuotaTable,
    check_limit,
    keys_of,
    known_key,
    limit_text,
)

_log = logging.getLogger(__name__)


class QuotaChange(NamedTuple):
    """The new value of one quota; None removes it."""

    key: str
    value: float | None


class QuotaSettings:
    """Describes and alters quotas. Each change replaces `table` by a new one."""

    def __init__(self, store: Store, clock: Clock, on_table: Callable[[QuotaTable], None]) -> None:
        """Create the object.

        `on_table` is called with each new table of quotas, to apply it.
        """
        self._store = store
        self._changes = ChangeLog(store, clock)
        self._clock = clock
        self._on_table = on_table
        self._changing = Lock()
        self.table = QuotaTable({})

    async def load(self) -> None:
        """Read all quotas. Quotas that cannot be read are logged and skipped."""
        quotas: dict[QuotaEntity, Limits] = {}
        async with self._changing:
            for root in QUOTA_ROOTS:
                for path, node in (await self._store.subtree(root)).items():
                    entity = quota_entity(path)
                    if entity is not None:
                        quotas[entity] = _limits(entity, path, _configs(path, node.data))
            self._take(QuotaTable(quotas))

    async def on_changed(self, entity_path: str) -> bool:
        """Read the quotas of an entity that a broker has changed.

        `entity_path` is the path in the notification, for example `users/alice`. Return False if
        this path has no quotas.
        """
        path = f"/config/{entity_path}"
        entity = quota_entity(path)
        if entity is None:
            return path.startswith(QUOTA_ROOTS)
        async with self._changing:
            node = await self._store.get(path)
            configs = {} if node is None else _configs(path, node.data)
            self._take(self.table.with_limits(entity, _limits(entity, path, configs)))
        return True

    async def alter(
        self,
        entity: QuotaEntity,
        wishes: Sequence[QuotaChange],
        author: Author = UNKNOWN_AUTHOR,
        *,
        validate_only: bool,
    ) -> None:
        """Set and remove quotas of one entity; other quotas are unchanged. Raises OttlaError."""
        wanted: dict[QuotaKey, float | None] = {}
        for name, value in wishes:
            if value is None and name not in {key.value for key in keys_of(entity)}:
                # As in Kafka, removing a quota that is not set is not an error.
                continue
            key = known_key(entity, name)
            if value is not None:
                check_limit(key, value)
            wanted[key] = value
        if validate_only:
            return
        async with self._changing:
            configs = await self._write(quota_path(entity), wanted, author)
            limits = _limits(entity, quota_path(entity), configs)
            self._take(self.table.with_limits(entity, limits))
        await self._changes.prune()
        _log.info("quotas of %s are now %s", entity, {k.value: v for k, v in limits.items()})

    def describe(
        self, components: Sequence[Component], *, strict: bool
    ) -> list[tuple[QuotaEntity, Limits]]:
        """Return the quotas of all entities that match the filter."""
        return [
            (entity, limits)
            for entity, limits in self.table.quotas.items()
            if is_meant(entity, components, strict=strict)
        ]

    async def _write(
        self, path: str, wanted: Mapping[QuotaKey, float | None], author: Author
    ) -> Mapping[str, str]:
        """Change the entity's node; return its new content."""

        def decide(stored: Mapping[str, str] | None) -> dict[str, str]:
            configs = dict(stored or {})
            for key, value in wanted.items():
                if value is None:
                    configs.pop(key.value, None)
                else:
                    configs[key.value] = limit_text(key, value)
            return configs

        def record(before: Mapping[str, str], after: Mapping[str, str]) -> Sequence[Operation]:
            values = {key.value: (before.get(key.value), after.get(key.value)) for key in wanted}
            name = path.removeprefix("/config/")
            return self._changes.operations(StoredChange("quota", name, values, author))

        await self._store.ensure(path)
        return await change(self._store, path, decide, self._clock, record) or {}

    def _take(self, table: QuotaTable) -> None:
        self.table = table
        self._on_table(table)


def _configs(path: str, data: bytes) -> dict[str, str]:
    """Decode a node's content; empty content means that the node exists only as a parent."""
    if not data:
        return {}
    try:
        return decode_configs(path, data)
    except OttlaError as error:
        _log.error("quotas cannot be read and do not apply; set them again: %s", error.message)
        return {}


def _limits(entity: QuotaEntity, path: str, configs: Mapping[str, str]) -> Limits:
    limits: dict[QuotaKey, float] = {}
    for key in keys_of(entity):
        text = configs.get(key.value)
        if text is None:
            continue
        try:
            value = float(text)
            check_limit(key, value)
        except (ValueError, OttlaError) as error:
            _log.error(
                "quota %s at %s is invalid (%s) and does not apply; set it again",
                key.value,
                path,
                error,
            )
            continue
        limits[key] = value
    return limits
