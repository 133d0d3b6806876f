"""Checks that a store gives each name to only one writer."""

import uuid
from contextlib import suppress

from ottla.base.errors import OttlaError
from ottla.lake.store.store import FileStore, no_put_if_absent


def prove_put_if_absent(store: FileStore, folder: str, problem: str, remedy: str) -> None:
    """Create a name in `folder` twice. Raises OttlaError with `problem` if both succeed."""
    path = f"{folder}.probe-{uuid.uuid4().hex}"
    try:
        first = store.put_if_absent(path, b"first")
        second = first and store.put_if_absent(path, b"second")
    except NotImplementedError as error:
        raise no_put_if_absent(store.url, str(error), remedy) from error
    finally:
        with suppress(OSError, OttlaError):
            store.remove(path)
    if not first or second:
        raise no_put_if_absent(store.url, problem, remedy)
