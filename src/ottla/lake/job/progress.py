"""The progress of loads and follows, and the callbacks that get it."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted, size_words, span_words
from ottla.lake.job.task import LoadResult
from ottla.lake.model.manifest import Manifest
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import LOOK_PATIENCE_S, Cluster, connect
from ottla.record.reader import batches

# The age of the oldest record is looked up in this many partitions, those with the most lag.
_AGED_MAX = 16


class Share(NamedTuple):
    """The part of a load that one task reads."""

    offsets: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a load. Sizes are the planned sizes of tasks."""

    tasks: int
    tasks_done: int
    offsets: int
    offsets_done: int
    size_bytes: int
    bytes_done: int
    elapsed_s: float
    lag_s: float | None  # The age of the oldest record that is not loaded yet.

    @property
    def left_s(self) -> float | None:
        """Return the estimated seconds left at the rate so far; None if no task is complete."""
        if not self.bytes_done or not self.elapsed_s:
            return None
        return (self.size_bytes - self.bytes_done) * self.elapsed_s / self.bytes_done

    def line(self) -> str:
        """Return the progress as one line."""
        share = self.bytes_done / self.size_bytes if self.size_bytes else 1.0
        words = [f"{share:.0%}"]
        if self.offsets:  # The second stage of a changelog reads no offsets.
            words.append(f"{self.offsets_done:,} of {self.offsets:,} offsets")
        words += [
            f"{size_words(self.bytes_done)} of {size_words(self.size_bytes)}",
            f"{self.tasks_done} of {self.tasks} tasks",
        ]
        if self.bytes_done and self.elapsed_s:
            words.append(f"{size_words(self.bytes_done / self.elapsed_s)}/s")
        if self.left_s is not None and self.tasks_done < self.tasks:
            words.append(f"{brief(self.left_s)} left")
        if self.lag_s is not None:
            words.append(f"{brief(self.lag_s)} behind")
        return " · ".join(words)


OnProgress = Callable[[Progress], None]


def progress_of(
    shares: Sequence[Share], done: int, elapsed_s: float, lag_at_start_s: float | None
) -> Progress:
    """Return the progress of a load of which `done` tasks are complete.

    Tasks start in order, so the first `done` tasks are assumed. At the end the sums are exact.
    """
    return Progress(
        tasks=len(shares),
        tasks_done=done,
        offsets=sum(one.offsets for one in shares),
        offsets_done=sum(one.offsets for one in shares[:done]),
        size_bytes=sum(one.size_bytes for one in shares),
        bytes_done=sum(one.size_bytes for one in shares[:done]),
        elapsed_s=elapsed_s,
        lag_s=None if lag_at_start_s is None else lag_at_start_s + elapsed_s,
    )


def brief(seconds: float) -> str:
    """Return a time span in one or two units: `8 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 and seconds != whole else f"{whole} s"
    units = (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1))
    big, small, big_s, small_s = next(one for one in units if whole >= one[2])
    count, rest = divmod(whole, big_s)
    tail = f" {rest // small_s} {small}" if rest // small_s else ""
    return f"{count:,} {big}{tail}"


@dataclass(frozen=True, slots=True)
class FollowProgress:
    """The progress of one commit of a follow, with the lag right after it.

    The lag counts readable records that are not loaded; None if it is unknown.
    """

    manifest: Manifest
    seconds: float
    lag_records: int | None  # In offsets, as group tools count lag.
    lag_ms: int | None  # The age of the oldest record that is not loaded yet; 0 without a lag.

    @property
    def size_bytes(self) -> int:
        """Return the total size of the files that the commit added."""
        return sum(file.size_bytes for file in self.manifest.files)

    def line(self) -> str:
        """Return the progress as one line of text."""
        lag = "unknown"
        if self.lag_records is not None:
            age = "" if self.lag_ms is None else f", {span_words(self.lag_ms // 1000 * 1000)}"
            lag = f"{counted(self.lag_records, 'record')}{age}"
        return (
            f"version {self.manifest.version}: {counted(self.manifest.rows, 'row')}, "
            f"{size_words(self.size_bytes)} in {self.seconds:.1f} s; behind: {lag}"
        )


def follow_progress(manifest: Manifest, bootstrap: Bootstrap, began_s: float) -> FollowProgress:
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
    """Return the number of offsets that are not loaded yet, without partitions that have none."""
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


@dataclass(frozen=True, slots=True)
class Observer:
    """Functions that are called during a run, in the thread of the caller or of a task."""

    # Called with the name of each completed step.
    on_step: Callable[[str], None] = lambda _step: None
    # Called with the progress of a commit's tasks.
    on_progress: OnProgress | None = None
    # Called with each commit of a follow, and each run of a repeated changelog.
    on_commit: Callable[[FollowProgress], None] = lambda _progress: None
    on_run: Callable[[LoadResult], None] = lambda _result: None
    # `on_error` is called with each failure that is retried, and once for an outage.
    # `on_recovery` is called at the end of an outage, with its seconds.
    on_error: Callable[[OttlaError], None] = lambda _error: None
    on_recovery: Callable[[float], None] = lambda _seconds: None
    # Stops a repeated run after its current commit.
    stop: threading.Event | None = None
    # The age, at the start, of the oldest record that was not loaded yet. It is for the progress.
    lag_s: float | None = None


UNWATCHED = Observer()
