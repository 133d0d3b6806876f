"""The age of rows when their load was committed, from the timestamps in the files' footers."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow.parquet as pq

from ottla.base.errors import OttlaError
from ottla.lake.edges.report import SHOWN, Delay
from ottla.lake.model.manifest import Manifest
from ottla.lake.store.store import FileStore

# The most footers to read: each is a request to an object store.
_FOOTERS_MAX = 400


def delays(store: FileStore, manifests: Sequence[Manifest]) -> list[Delay]:
    """Return the delays of the newest loads whose files exist, oldest load first."""
    found: list[Delay] = []
    left = _FOOTERS_MAX
    for manifest in reversed(manifests[-SHOWN:]):
        left -= len(manifest.files)
        if left < 0:
            break
        if manifest.kind != "load":
            continue
        times_ms: list[float] = []
        for file in manifest.files:
            # Files that compaction or expiry removed have no footer any more.
            with suppress(OSError, OttlaError):
                times_ms += _times_ms(store, file.path)
        if times_ms:
            newest_s = (manifest.created_ms - max(times_ms)) / 1000
            oldest_s = (manifest.created_ms - min(times_ms)) / 1000
            found.append(Delay(manifest.version, max(0.0, oldest_s), max(0.0, newest_s)))
    return found[::-1]


def _times_ms(store: FileStore, path: str) -> list[float]:
    """Return the lowest and the highest timestamp of each row group that has any."""
    with store.open(path) as file:
        metadata = pq.read_metadata(file)
    found: list[float] = []
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column: Any = metadata.row_group(group).column(number)
            statistics = column.statistics
            if column.path_in_schema == "timestamp" and statistics and statistics.has_min_max:
                found += [statistics.min.timestamp() * 1000, statistics.max.timestamp() * 1000]
    return found
