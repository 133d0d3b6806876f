"""The last changes that clients made, in the store, with the values before and after each.

Settings and quotas are recorded in the write that changes them, committed offsets after it.
"""

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.base.settings.broker import is_secret
from ottla.broker.requests.request import RequestContext
from ottla.coordination.interface.store import Create, Delete, Operation, Store, StoreError
from ottla.metadata import paths
from ottla.metadata.undo import (
    NODE_BYTES_MAX,
    Author,
    StoredChange,
    decode_change,
    encode_change,
)

_log = logging.getLogger(__name__)

_PREFIX = "change_"
# How many changes are kept, and how many more there may be before the oldest are removed.
_KEPT = 100
_MORE = 20


def author_of(request: RequestContext) -> Author:
    """Return the client that sent a request."""
    principal = str(request.connection.principal)
    return Author(principal, request.client_id or "", request.client_host)


class ChangeLog:
    """Records changes, and reads them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._count = 0

    def operations(self, change: StoredChange) -> list[Operation]:
        """Return the operation that records a change; none if nothing changes that can be undone.

        Secret values are not recorded.
        """
        values = {name: pair for name, pair in change.values.items() if pair[0] != pair[1]}
        if not values:
            return []
        author = replace(change.author, at_ms=self._clock.now_ms())
        data = encode_change(replace(change, values=values, author=author))
        if len(data) > NODE_BYTES_MAX:
            _log.warning("a change of %s is too large to be recorded for an undo", change.name)
            return []
        return [Create(f"{paths.CHANGES}/{_PREFIX}", data, sequential=True)]

    async def record(self, change: StoredChange) -> None:
        """Record a change that was already made. A failure is logged."""
        operations = self.operations(change)
        try:
            if operations:
                await self._store.multi(operations)
        except StoreError as error:
            _log.warning("a change of %s cannot be undone: %s", change.name, error.message)
        await self.prune()

    async def prune(self) -> None:
        """Remove the oldest changes, now and then. A failure is left to the next time."""
        self._count += 1
        if self._count % _MORE:
            return
        with contextlib.suppress(StoreError):
            for name in (await self._store.children(paths.CHANGES))[:-_KEPT]:
                await self._store.multi([Delete(f"{paths.CHANGES}/{name}")])

    async def all(self) -> list[tuple[int, StoredChange]]:
        """Return the recorded changes with their numbers, the oldest first. Raises StoreError."""
        found: list[tuple[int, StoredChange]] = []
        for path, node in sorted((await self._store.subtree(paths.CHANGES)).items()):
            number = path.removeprefix(f"{paths.CHANGES}/{_PREFIX}")
            if not number.isdecimal():
                continue
            try:
                found.append((int(number), decode_change(path, node.data)))
            except OttlaError as error:
                _log.warning("%s", error.message)
        return found


def changed_values(
    before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    """Return the settings that differ, without secrets."""
    names = sorted({*before, *after})
    return {
        name: (before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name) and not is_secret(name)
    }
