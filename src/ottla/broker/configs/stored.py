"""Changes the stored settings of one resource, safely with concurrent changes by other brokers."""

import logging
from collections.abc import Callable, Mapping

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.broker.configs.changes import change_notice
from ottla.coordination.interface.store import (
    BadVersion,
    Create,
    NodeExists,
    NoNode,
    Operation,
    Set,
    Store,
)
from ottla.metadata.nodes import decode_configs, encode_configs

_log = logging.getLogger(__name__)

# Maps the stored settings (None: none yet) to the new ones; None leaves them unchanged. Raises
# OttlaError.
Decide = Callable[[Mapping[str, str] | None], Mapping[str, str] | None]


async def change(store: Store, path: str, decide: Decide, clock: Clock) -> dict[str, str] | None:
    """Store the result of `decide` and notify other brokers; return it, or None if unchanged.

    `decide` receives the settings in the store, because this broker's image may lack a recent
    change by another broker; after a conflict it is called again. Raises OttlaError.
    """
    while True:
        node = await store.get(path)
        after = decide(None if node is None else _decoded(path, node.data))
        if after is None:
            return None
        data = encode_configs(after)
        write: Operation = Create(path, data) if node is None else Set(path, data, node.version)
        try:
            await store.multi([write, change_notice(path, clock.now_ms())])
        except (BadVersion, NodeExists):
            continue
        except NoNode:
            if node is None:
                raise
            continue
        return dict(after)


def _decoded(path: str, data: bytes) -> Mapping[str, str]:
    """Decode a node; unreadable data counts as empty, so that a change repairs it.

    An empty node exists only as the parent of others.
    """
    if not data:
        return {}
    try:
        return decode_configs(path, data)
    except OttlaError as error:
        _log.error("settings that cannot be read: %s", error.message)
        return {}
