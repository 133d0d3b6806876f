"""Rereads everything below `/config`, for a broker that has missed change notices."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from ottla.base.errors import OttlaError
from ottla.broker.configs.changes import OnChanged
from ottla.coordination.interface.store import Store, StoreError
from ottla.metadata import paths
from ottla.security.stored import CONFIG_ACLS

_log = logging.getLogger(__name__)

_CONFIG = "/config"


def reading_all(
    store: Store, on_changed: OnChanged, loads: Sequence[Callable[[], Awaitable[None]]]
) -> Callable[[], Awaitable[None]]:
    """Return a call that applies each settings node as if it had changed. Raises StoreError.

    Settings nodes are emptied, not deleted. Nodes of ACLs and tokens are deleted; so `loads` reread
    all of them.
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
