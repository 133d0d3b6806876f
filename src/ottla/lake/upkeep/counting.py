"""The files of a table that count now: all that upkeep goes by, as one version has it."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.lake.log.live import live_letters
from ottla.lake.manifest import DataFile, Manifest, TableSchema
from ottla.lake.tables.table import LakeTable, LoadLost
from ottla.lake.upkeep.grouping import columns_of

_TRIES = 20
# What columns files have, by path.
Columns = Mapping[str, TableSchema | None]


@dataclass(frozen=True, slots=True)
class CountingFiles:
    """Files of rows and of dead letters that count at version `newest`; None: an empty table."""

    newest: Manifest | None
    files: Sequence[DataFile]
    letters: Sequence[DataFile]
    columns: Columns
    # Paths by the format's log: other programs may have replaced files there.
    readers_see: AbstractSet[str]


def counting_now(table: LakeTable) -> CountingFiles:
    """Read the chain and the log; again where another commit came between.

    Raises LoadLost where one did each time.
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
