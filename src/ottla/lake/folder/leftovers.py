"""What a load that failed leaves in the table's folder, and its removal by that load."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ottla.lake.table import LoadLost, Table


class Steps:
    """Which steps of the load are done."""

    def __init__(self) -> None:
        self.done: set[str] = set()


@contextmanager
def removed_on_failure(table: Table, version: int, load_id: str, steps: Steps) -> Iterator[None]:
    """Remove the load's files where it fails, unless a manifest may name them.

    A task that still runs may leave one more: that is an orphan, as those of a killed load are.
    """
    try:
        yield
    except BaseException as error:
        # Once the manifest is being linked only another load's manifest shows that it was not.
        was_offered = "manifest written" in steps.done
        if not was_offered or (
            isinstance(error, LoadLost) and _is_of_another(table, version, load_id)
        ):
            for path in _files(table.folder, load_id):
                with suppress(OSError):
                    path.unlink()
        raise


def _is_of_another(table: Table, version: int, load_id: str) -> bool:
    loads = {manifest.version: manifest.load_id for manifest in table.history()}
    return loads.get(version, load_id) != load_id


def _files(folder: Path, load_id: str) -> list[Path]:
    return [
        *folder.glob(f"data/v*-{load_id}-*"),
        *folder.glob(f"_ottla/manifests/.{load_id}.tmp"),
    ]
