"""Settings of one resource in the store, changed whatever other brokers change meanwhile."""

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

# What is to be stored, given what is (None: nothing yet). None: leave it. Raises OttlaError.
Decide = Callable[[Mapping[str, str] | None], Mapping[str, str] | None]


async def change(store: Store, path: str, decide: Decide, clock: Clock) -> dict[str, str] | None:
    """Store what `decide` says and notify the other brokers; what is stored, None if unchanged.

    The image of this broker may lack what another broker has just changed, so that `decide` is
    given what the store has, and once more where another broker was faster. Raises OttlaError.
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
    """What a node holds; nothing where it cannot be read, so that a change mends it.

    An empty node exists only as the parent of others.
    """
    if not data:
        return {}
    try:
        return decode_configs(path, data)
    except OttlaError as error:
        _log.error("settings that cannot be read: %s", error.message)
        return {}
