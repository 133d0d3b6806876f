"""Files that a failed load leaves in the table's folder, and their removal by that load."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ottla.base.errors import OttlaError
from ottla.lake.store.store import PutUnknown
from ottla.lake.tables.data_files import remove_load
from ottla.lake.tables.table import FencedWriter, LakeTable, LoadLost


class Steps:
    """The completed steps of a load; `on_step` is called with the name of each."""

    def __init__(self, on_step: Callable[[str], None]) -> None:
        self.done: set[str] = set()
        self._on_step = on_step

    def reached(self, step: str) -> None:
        """Record that a step is complete."""
        self.done.add(step)
        self._on_step(step)


@contextmanager
def removed_on_failure(
    table: LakeTable, version: int, load_id: str, steps: Steps
) -> Iterator[None]:
    """Remove the load's files if it fails, unless a manifest may name them.

    A task that is still running may write one more file, which becomes an orphan like those of a
    killed load.
    """
    try:
        yield
    except BaseException as error:
        if _counts_not(error, table, load_id, steps):
            with suppress(OSError, OttlaError):
                remove_load(table.store, version, load_id)
        raise


def _counts_not(error: BaseException, table: LakeTable, load_id: str, steps: Steps) -> bool:
    """Return whether it is certain that no manifest names the load's files, nor ever will."""
    if "manifest offered" not in steps.done:
        return True
    if isinstance(error, LoadLost | FencedWriter):
        return all(manifest.load_id != load_id for manifest in table.history())
    is_refusal = isinstance(error, OSError | OttlaError) and not isinstance(error, PutUnknown)
    return is_refusal and "manifest written" not in steps.done
