"""The live files of a table in one version, on which upkeep works."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.lake.model.live import live_letters
from ottla.lake.model.manifest import DataFile, Manifest, TableSchema
from ottla.lake.tables.table import LakeTable, LoadLost
from ottla.lake.write.file_groups import columns_of

_TRIES = 20
# The columns of each file, by path.
Columns = Mapping[str, TableSchema | None]


@dataclass(frozen=True, slots=True)
class CountingFiles:
    """The live files of rows and of dead letters in version `newest`; None: an empty table."""

    newest: Manifest | None
    files: Sequence[DataFile]
    letters: Sequence[DataFile]
    columns: Columns
    # Live paths in the format's log, where other programs may have replaced files.
    readers_see: AbstractSet[str]


def counting_now(table: LakeTable) -> CountingFiles:
    """Read the chain and the log, and read both again if another commit came between.

    Raises LoadLost if that happens each time.
    """
    for _ in range(_TRIES):
        manifests = list(table.history())
        files = table.live_files()
        readers_see = frozenset(table.live_paths())
        newest, _digest = table.latest()
        if (newest.version if newest else 0) == len(manifests):
            return CountingFiles(
                newest, files, live_letters(manifests), columns_of(manifests), readers_see
            )
    raise LoadLost(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"other commits to {table.store.url} came each time that its files were looked up; nothing "
        "was changed: run it again",
    )
