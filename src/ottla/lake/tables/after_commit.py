"""Steps after a commit: the head marker, the group's offsets, removal of orphans, dead letters.

The commit is valid even if these steps fail; the next run completes them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import OttlaError
from ottla.lake.store.errors import as_storage_error
from ottla.lake.tables.table import FencedWriter, LoadLost


@contextmanager
def committed_before(place: str, version: int) -> Iterator[None]:
    """Add to an error that `version` of the table in `place` is committed. Raises OttlaError."""
    try:
        with as_storage_error(place):
            yield
    except (LoadLost, FencedWriter, CommittedThough):
        raise
    except OttlaError as error:
        raise CommittedThough(
            error.code,
            f"version {version} of {place} is committed and counts; what follows a commit failed, "
            f"which the next run does: {error.message}",
        ) from error


class CommittedThough(OttlaError):
    """Raised if a commit succeeded and a step after it failed."""
