"""The result of one commit of a table that follows a topic, and the table's lag after it."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted, size_words, span_words
from ottla.lake.model.manifest import Manifest
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import LOOK_PATIENCE_S, Cluster, connect
from ottla.record.reader import batches

# How many partitions, those with the most lag, are asked for the age of their oldest record.
_AGED_MAX = 16


@dataclass(frozen=True, slots=True)
class FollowProgress:
    """One commit. The lag is what was readable and not loaded right after it; None: unknown."""

    manifest: Manifest
    seconds: float
    lag_records: int | None  # In offsets, as group tools count lag.
    lag_ms: int | None  # The age of the oldest record that is not loaded yet; 0 without a lag.

    @property
    def size_bytes(self) -> int:
        """Return the size of the files that the commit added."""
        return sum(file.size_bytes for file in self.manifest.files)

    def line(self) -> str:
        """Return one line for people."""
        lag = "unknown"
        if self.lag_records is not None:
            age = "" if self.lag_ms is None else f", {span_words(self.lag_ms // 1000 * 1000)}"
            lag = f"{counted(self.lag_records, 'record')}{age}"
        return (
            f"version {self.manifest.version}: {counted(self.manifest.rows, 'row')}, "
            f"{size_words(self.size_bytes)} in {self.seconds:.1f} s; behind: {lag}"
        )


def progress_of(manifest: Manifest, bootstrap: Bootstrap, began_s: float) -> FollowProgress:
    """Return the progress of a commit that began at `began_s` of the monotonic clock."""
    seconds = time.monotonic() - began_s
    try:
        with closing(connect(bootstrap, LOOK_PATIENCE_S)) as cluster:
            ends = {p: end.offset for p, end in cluster.ends(manifest.topic).ends.items()}
            lag = _lag(ends, manifest.positions)
            age_ms = _age_ms(cluster, manifest, lag, time.time_ns() // 1_000_000)
    except OttlaError:
        return FollowProgress(manifest, seconds, None, None)
    return FollowProgress(manifest, seconds, sum(lag.values()), age_ms)


def _lag(ends: Mapping[int, int], positions: Mapping[int, int]) -> dict[int, int]:
    """Return the number of offsets not loaded, of each partition that has some."""
    found = {p: end - positions.get(p, 0) for p, end in ends.items()}
    return {p: count for p, count in found.items() if count > 0}


def _age_ms(
    cluster: Cluster, manifest: Manifest, lag: Mapping[int, int], now_ms: int
) -> int | None:
    if not lag:
        return 0
    ages = []
    for partition in sorted(lag, key=lambda p: -lag[p])[:_AGED_MAX]:
        position = manifest.positions.get(partition, 0)
        for _, header in batches(cluster.peek(manifest.topic, partition, position)):
            if header.last_offset >= position:
                first_ms = (
                    header.max_timestamp if header.is_log_append_time else header.base_timestamp
                )
                ages.append(max(0, now_ms - first_ms))
                break
    return max(ages, default=None)
