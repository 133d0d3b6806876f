"""What a load that failed leaves in the table's folder, and its removal by that load."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ottla.base.errors import OttlaError
from ottla.lake.stores.store import PutUnknown
from ottla.lake.tables.data_files import remove_load
from ottla.lake.tables.table import FencedWriter, LakeTable, LoadLost


class Steps:
    """Which steps of the load are done; `on_step` is called with the name of each."""

    def __init__(self, on_step: Callable[[str], None]) -> None:
        self.done: set[str] = set()
        self._on_step = on_step

    def reached(self, step: str) -> None:
        """A step is done."""
        self.done.add(step)
        self._on_step(step)


@contextmanager
def removed_on_failure(
    table: LakeTable, version: int, load_id: str, steps: Steps
) -> Iterator[None]:
    """Remove the load's files where it fails, unless a manifest may name them.

    A task that still runs may leave one more: that is an orphan, as those of a killed load are.
    """
    try:
        yield
    except BaseException as error:
        if _counts_not(error, table, load_id, steps):
            with suppress(OSError, OttlaError):
                remove_load(table.store, version, load_id)
        raise


def _counts_not(error: BaseException, table: LakeTable, load_id: str, steps: Steps) -> bool:
    """Whether it is certain that no manifest names the load's files, nor ever will."""
    if "manifest offered" not in steps.done:
        return True
    if isinstance(error, LoadLost | FencedWriter):
        return all(manifest.load_id != load_id for manifest in table.history())
    is_refusal = isinstance(error, OSError | OttlaError) and not isinstance(error, PutUnknown)
    return is_refusal and "manifest written" not in steps.done
