"""What follows a commit: the head, the group's offsets, the removal of orphans, dead letters.

The commit counts whatever becomes of these, and the next run does what was left undone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import OttlaError
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.tables.table import FencedWriter, LoadLost


@contextmanager
def committed_before(place: str, version: int) -> Iterator[None]:
    """Have an error say that `version` of the table in `place` counts. Raises OttlaError."""
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
    """A commit counts, and what follows it has failed."""
