"""Replays batches that a log already contains: leader epochs, producers, transactions."""

from ottla.record.header import HEADER_SIZE, BatchHeader
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.index.leader_epochs import LeaderEpochs
from ottla.storage.index.transaction_index import AbortedTransaction
from ottla.storage.producers.snapshot import newest_good
from ottla.storage.producers.state import ProducerStates
from ottla.storage.producers.window import widen
from ottla.storage.segment.batch_walk import BadHeader, read_marker, walk
from ottla.storage.segment.segment import Segment


class Replay:
    """Rebuilds a log's state outside of its segments, batch by batch."""

    def __init__(self, epochs: LeaderEpochs, producers: ProducerStates, next_offset: int) -> None:
        self.epochs = epochs
        self.producers = producers
        # Invariant: everything below is reflected in `producers`.
        self.next_offset = next_offset

    def batch(self, segment: Segment, position: int, header: BatchHeader) -> None:
        """Take in the batch at `position` of `segment`, unless it was taken in before."""
        # Hot: 0.3 µs for a batch without a producer id.
        if header.leader_epoch > self.epochs.latest:
            self.epochs.assign(header.leader_epoch, header.base_offset)
        last_offset = header.base_offset + header.last_offset_delta
        if last_offset < self.next_offset:
            return
        self.next_offset = last_offset + 1
        if header.producer_id >= 0:
            if header.is_control:
                payload = segment.file.pread(header.size - HEADER_SIZE, position + HEADER_SIZE)
                take_marker(self.producers, segment, header, header.base_offset, payload)
            else:
                self.producers.update(header, header.base_offset)
            self.producers.map_end_offset = self.next_offset


def take_marker(
    producers: ProducerStates,
    segment: Segment,
    header: BatchHeader,
    offset: int,
    payload: bytes | memoryview,
) -> None:
    """End the transaction whose marker stands at `offset`; `payload` is what follows its header."""
    marker = read_marker(payload)
    if marker is None:
        return
    is_commit, coordinator_epoch = marker
    completed = producers.end_transaction(header, offset, coordinator_epoch, not is_commit)
    if completed is not None and completed.is_aborted:
        segment.transactions.append(
            AbortedTransaction(
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                producers.last_stable_offset_after(completed),
            )
        )


def rebuild_producers(
    filesystem: FileSystem,
    folder: str,
    segments: list[Segment],
    snapshots: list[int],
    producers: ProducerStates,
    end: int,
    now_ms: int,
) -> None:
    """Load `producers` as of `end`, from a snapshot and the later batches. Raises StorageError."""
    offset, entries = newest_good(filesystem, folder, snapshots, end)
    begin = max(offset, segments[0].base_offset)
    producers.load(entries, begin, now_ms)
    replay = Replay(LeaderEpochs([(2**31 - 1, 0)]), producers, begin)
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= begin:
            continue
        if not segment.indexes.loaded:
            segment.load_indexes()
        segment.transactions.truncate_to_offset(max(begin, segment.base_offset))
        start = segment.position_of(max(begin, segment.base_offset))
        try:
            for place, header in walk(segment.file, start, segment.size, segment.base_offset):
                replay.batch(segment, place, header)
        except BadHeader as bad:
            raise segment.corrupt(bad) from None
    producers.map_end_offset = end
    widen(producers, segments)
