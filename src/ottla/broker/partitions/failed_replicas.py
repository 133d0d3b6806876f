"""Reports to the controller, through the store, that replicas of this broker went offline.

The controller then sends LeaderAndIsr for all partitions again, and learns from the answers which
replicas are offline (Kafka's `/log_dir_event_notification`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.base.ids import BrokerId
from ottla.coordination.interface.store import Create, Store, StoreError
from ottla.metadata import paths
from ottla.metadata.notices import encode_log_dir_event

_log = logging.getLogger(__name__)

_PREFIX = f"{paths.LOG_DIR_EVENTS}/log_dir_event_"
_RETRY_S = 1.0

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class FailedReplicas:
    """Writes one notice for all replicas that fail together."""

    def __init__(self, store: Store, broker_id: BrokerId, spawn: Spawn) -> None:
        self._store = store
        self._broker_id = broker_id
        self._spawn = spawn
        self._is_reporting = False

    def report(self) -> None:
        """Report a replica that has just failed."""
        if not self._is_reporting:
            self._is_reporting = True
            self._spawn(self._write_notice())

    async def _write_notice(self) -> None:
        # Failures in the same turn share one notice.
        await asyncio.sleep(0)
        self._is_reporting = False
        data = encode_log_dir_event(self._broker_id)
        while True:
            try:
                await self._store.multi([Create(_PREFIX, data, sequential=True)])
                return
            except StoreError as error:
                _log.warning("cannot report failed replicas to the controller: %s", error.message)
            await asyncio.sleep(_RETRY_S)
