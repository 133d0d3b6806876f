"""A cluster whose logs are read from files, where a log directory of a replica is at hand.

What to read is known from the leader: the range ends at or below the last stable offset, and the
log's start is asked for. Of each piece the leader confirms that its log has the same batch at the
same place in the same leader epoch; then all before it is the same, too (KIP-101). What the files
do not have, or not whole, comes from the leader.
"""

from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.cluster import KafkaCluster, connect
from ottla.lake.plan import Range
from ottla.lake.replica.files import chunks, find_folder
from ottla.lake.replica.outcomes import Batch, TransactionOutcomes
from ottla.lake.source import Fetched
from ottla.record.header import BatchHeader
from ottla.record.reader import CorruptBatch


class ReplicaCluster(KafkaCluster):
    """Reads from `log_dirs` first; all else, and all that is not there, over the network."""

    def __init__(self, bootstrap: str, log_dirs: tuple[str, ...]) -> None:
        super().__init__(bootstrap)
        self._log_dirs = log_dirs
        self._tried: set[tuple[str, int, int]] = set()

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        position = wanted.start
        # The rest, if there is one, is the leader's to give: also what is damaged here.
        with suppress(OSError, CorruptBatch, LookupError):
            for fetched, last in self._from_files(wanted):
                self._require_same_log(wanted, last)
                position = last.last_offset + 1
                yield fetched
        if position < wanted.end:
            yield from super().fetch(replace(wanted, start=position))

    def _from_files(self, wanted: Range) -> Iterator[tuple[Fetched, BatchHeader]]:
        """What the files have of it, with the last header of each piece."""
        key = (wanted.topic, wanted.partition, wanted.end)
        if wanted.topic_id is None or key in self._tried:
            return  # Asked again, since what the files gave was damaged.
        self._tried.add(key)
        folder = find_folder(self._log_dirs, wanted.topic, wanted.partition, wanted.topic_id)
        if folder is None:
            return
        log_start = self.log_starts(wanted.topic)[wanted.partition]
        if log_start < wanted.end:
            for buffer, last, aborted in _read(folder, max(wanted.start, log_start), wanted.end):
                yield Fetched(buffer, log_start, aborted), last

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
        for buffer, found in chunks(folder, position):
            kept = [(place, header) for place, header in found if header.base_offset < end]
            if not kept:
                return
            aborted = [
                told
                for _, header in kept
                if header.is_transactional
                and not header.is_control
                and (told := outcomes.aborted_at(header)) is not None
            ]
            last_place, last = kept[-1]
            size = last_place + last.size
            yield (buffer if size == len(buffer) else buffer[:size]), last, tuple(aborted)
            if last.last_offset + 1 >= end:
                return


def _batches(folder: Path, position: int) -> Generator[Batch]:
    for buffer, found in chunks(folder, position):
        for place, header in found:
            yield buffer, place, header


def open_cluster(bootstrap: str, log_dirs: tuple[str, ...] = ()) -> KafkaCluster:
    """Connect to the cluster; with `log_dirs` its logs are read there, where they are."""
    return ReplicaCluster(bootstrap, log_dirs) if log_dirs else connect(bootstrap)
