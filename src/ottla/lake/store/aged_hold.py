"""Markers of running processes for storage without locks: a marker's age decides.

A killed process leaves its marker, which stays valid until it is a day old.
"""

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ottla.base.errors import OttlaError
from ottla.lake.store.store import FileStore

_COUNTS_MS = 24 * 3600 * 1000


@contextmanager
def hold(store: FileStore, path: str) -> Iterator[None]:
    """Keep a marker until the context is left."""
    store.replace(path, platform.node().encode())
    try:
        yield
    finally:
        with suppress(OSError, OttlaError):
            store.remove(path)


def is_fresh(modified_ms: int) -> bool:
    """Return whether a marker of this age is still valid."""
    return time.time_ns() // 1_000_000 - modified_ms < _COUNTS_MS
