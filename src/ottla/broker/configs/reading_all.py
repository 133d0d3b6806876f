"""Reads everything below `/config` again, for a broker that has missed notices of changes."""

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
    """A call that takes over each node of settings as if it had changed. Raises StoreError.

    Such nodes are emptied and not deleted. Those of ACLs and tokens are deleted: `loads` read
    them as a whole.
    """

    async def read_all() -> None:
        for load in loads:
            await load()
        for path, node in (await store.subtree(_CONFIG)).items():
            # Nodes without data are folders.
            if not node.data or path.startswith((CONFIG_ACLS, paths.CONFIG_CHANGES)):
                continue
            try:
                await on_changed(path.removeprefix(f"{_CONFIG}/"))
            except StoreError:
                raise
            except OttlaError as error:
                _log.error("settings at %s do not apply; set them again: %s", path, error.message)

    return read_all
