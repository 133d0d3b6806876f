"""A cluster whose logs are read from files, where a log directory of a replica is at hand.

What to read is known from the leader: the range ends at or below the last stable offset, and the
log's start is asked for. Of the range's last batch the leader confirms that its log has the same
at the same place in the same leader epoch; then all before it is the same, too (KIP-101). What the
files do not have, or not whole, comes from the leader.
"""

from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.access import ClientAccess
from ottla.lake.cluster import KafkaCluster, connect
from ottla.lake.plan import Range
from ottla.lake.replica.files import chunks, find_folder, last_header
from ottla.lake.replica.outcomes import Batch, TransactionOutcomes
from ottla.lake.source import Fetched
from ottla.record.codec import LONG_MAX
from ottla.record.header import BatchHeader, read_header
from ottla.record.reader import CorruptBatch, Survey, batches


class ReplicaCluster(KafkaCluster):
    """Reads from `log_dirs` first; all else, and all that is not there, over the network."""

    def __init__(
        self,
        bootstrap: str,
        log_dirs: tuple[str, ...],
        access: ClientAccess = ClientAccess(),  # noqa: B008  # A value.
    ) -> None:
        super().__init__(bootstrap, access=access)
        self._log_dirs = log_dirs
        self._tried: set[tuple[str, int, int]] = set()

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        position = wanted.start
        # The rest, if there is one, is the leader's to give: also what is damaged here.
        with suppress(OSError, CorruptBatch, LookupError):
            for fetched, after in self._from_files(wanted):
                position = after
                yield fetched
        if position < wanted.end:
            yield from super().fetch(replace(wanted, start=position))

    def _from_files(self, wanted: Range) -> Iterator[tuple[Fetched, int]]:
        """What the files have of it, with the offset behind each piece."""
        key = (wanted.topic, wanted.partition, wanted.end)
        if wanted.topic_id is None or key in self._tried:
            return  # Read again, since what the files gave was damaged.
        self._tried.add(key)
        folder = find_folder(self._log_dirs, wanted.topic, wanted.partition, wanted.topic_id)
        if folder is None:
            return
        log_start = self.log_starts(wanted.topic)[wanted.partition]
        if log_start >= wanted.end:
            return
        position = max(wanted.start, log_start)
        same_until = self._same_until(wanted, folder)
        for buffer, last, aborted in _read(folder, position, wanted.end):
            if last.last_offset > same_until:
                self._require_same_log(wanted, last)
                same_until = last.last_offset
            yield Fetched(buffer, log_start, aborted), last.last_offset + 1

    def _same_until(self, wanted: Range, folder: Path) -> int:
        """The last offset of the range that the files have, once the leader has confirmed it.

        One request for the whole range instead of one for each piece. -1 where the files do not
        have its last batch: each piece is confirmed then.
        """
        last = None
        with suppress(OSError, CorruptBatch):
            last = last_header(folder, wanted.end)
        if last is None:
            return -1
        self._require_same_log(wanted, last)
        return last.last_offset

    def _require_same_log(self, wanted: Range, last: BatchHeader) -> None:
        found = self.epoch_ends(wanted.topic, {wanted.partition: last.leader_epoch})
        if found[wanted.partition] <= last.last_offset:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"the files of {wanted.topic}-{wanted.partition} in {', '.join(self._log_dirs)} "
                f"are not what its leader has: in leader epoch {last.leader_epoch} its log ends at "
                f"{found[wanted.partition]}, and theirs has offset {last.last_offset}. Read "
                "without --log-dir, or from the directory of a replica that is in sync",
            )


def _read(
    folder: Path, position: int, end: int
) -> Iterator[tuple[bytes, BatchHeader, tuple[tuple[int, int], ...]]]:
    """Whole batches up to `end`, the last one's header, and aborted transactions from there."""
    with closing(_batches(folder, position)) as ahead:
        outcomes = TransactionOutcomes(ahead)
        for buffer, found in chunks(folder, position, end):
            aborted = tuple(_aborted(buffer, found, outcomes)) if found.is_transactional else ()
            last = read_header(buffer, found.last)
            # Hot: copied where others stand before or behind. One that is not whole may stay.
            if found.start or found.is_cut:
                buffer = buffer[found.start : found.end]
            yield buffer, last, aborted
            if last.last_offset + 1 >= end:
                return


def _aborted(
    buffer: bytes, found: Survey, outcomes: TransactionOutcomes
) -> Iterator[tuple[int, int]]:
    """Aborted transactions that begin in a piece, as (producer id, first offset)."""
    for place, header in batches(buffer, found.start):
        if place >= found.end:
            return
        if header.is_transactional and not header.is_control:
            begun = outcomes.aborted_at(header)
            if begun is not None:
                yield begun


def _batches(folder: Path, position: int) -> Generator[Batch]:
    for buffer, found in chunks(folder, position, LONG_MAX):
        for place, header in batches(buffer, found.start):
            if place < found.end:
                yield buffer, place, header


def open_cluster(
    bootstrap: str,
    log_dirs: tuple[str, ...] = (),
    access: ClientAccess = ClientAccess(),  # noqa: B008  # A value.
) -> KafkaCluster:
    """Connect to the cluster; with `log_dirs` its logs are read there, where they are."""
    if log_dirs:
        return ReplicaCluster(bootstrap, log_dirs, access)
    return connect(bootstrap, access=access)
