"""A pointer to the newest metadata of an Iceberg table, for readers that know its folder only.

    DIR/metadata/version-hint.text     3
    DIR/metadata/v3.metadata.json      the file that the catalog names, under a second name

So DuckDB's `iceberg_scan` and the tables by path of Iceberg's own Java library find it. The catalog
decides: the pointer is written after it, and one that a crash has left behind is some commits old.
"""

import os
import re
from contextlib import suppress
from pathlib import PurePosixPath

from pyiceberg.table import Table

from ottla.base.errors import OttlaError
from ottla.lake.stores.local import LocalStore

_FOLDER = "metadata/"
_HINT = f"{_FOLDER}version-hint.text"
_NUMBERED = re.compile(r"v(\d+)\.metadata\.json")
# Readers that have just read the pointer may still open the one before.
_KEPT = 2


def write_hint(store: LocalStore, table: Table) -> None:
    """Point to the table's metadata. The commit counts whether that succeeds or not."""
    current = PurePosixPath(table.metadata_location).name
    number = int(current.partition("-")[0])
    with suppress(OSError, OttlaError):
        with suppress(FileExistsError):
            folder = store.root / _FOLDER
            os.link(folder / current, folder / f"v{number}.metadata.json")
        store.replace(_HINT, str(number).encode())
        numbered = map(_NUMBERED.fullmatch, store.names(_FOLDER))
        for one in [each for each in numbered if each and int(each[1]) <= number - _KEPT]:
            store.remove(_FOLDER + one[0])
