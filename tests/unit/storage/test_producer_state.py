"""Laws of producer state: duplicates, order, epochs, transactions (P9, KIP-98)."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.producers.snapshot import decode, encode
from ottla.storage.producers.state import ProducerStates

from .batches import marker, parsed
from .logs import append, open_log, ranges

TRANSACTIONAL = 0x10


def send(
    log: Log, sequence: int, count: int = 1, *, who: int = 7, epoch: int = 0, **fields: int
) -> tuple[int, bool]:
    """(base offset, is it a duplicate) of what producer `who` sends."""
    fields |= {"producer_id": who, "producer_epoch": epoch, "sequence": sequence}
    appended = append(log, count, **fields)
    return appended.base_offset, appended.duplicate


def end(log: Log, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> int:
    """Append producer 7's marker; returns its offset."""
    encoded = marker(
        commit=commit, producer_id=7, producer_epoch=epoch, coordinator_epoch=coordinator_epoch
    )
    return log.append_as_leader(*parsed(encoded), 0, 1_000).base_offset


def refused(log: Log, sequence: int, *, epoch: int = 0, **fields: int) -> ErrorCode:
    before = ranges(log)
    with pytest.raises(OttlaError) as caught:
        send(log, sequence, epoch=epoch, **fields)
    assert ranges(log) == before
    return caught.value.code


def test_repeated_batch_is_answered_with_its_first_offset() -> None:
    """Each of the last five batches is known again, and appended once."""
    log = open_log()
    for sequence in range(0, 10, 2):
        send(log, sequence, 2)
    assert [send(log, sequence, 2) for sequence in range(0, 10, 2)] == [
        (offset, True) for offset in (0, 2, 4, 6, 8)
    ]
    assert log.log_end_offset == 10


def test_batches_before_the_last_five_are_known_to_be_appended() -> None:
    """Only where they stand is forgotten: librdkafka ends where that is called out of order."""
    log = open_log()
    for sequence in range(0, 20, 2):
        send(log, sequence, 2)
    for sequence, count in ((0, 2), (8, 2), (3, 5)):
        assert refused(log, sequence, count=count) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    # It reaches into those of which the boundaries are known, and has others.
    assert refused(log, 9, count=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 10, 2) == (10, True)
    assert send(log, 20) == (20, False)


def test_what_came_before_the_first_batch_here_is_not_known() -> None:
    """It may have been lost on its way, and calling it appended would lose it for good."""
    log = open_log()
    for sequence in range(10, 17):
        send(log, sequence)
    assert refused(log, 9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 9, count=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 10) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER


def test_each_epoch_is_known_from_its_own_first_batch() -> None:
    """Sequences begin anew with it."""
    log = open_log()
    for sequence in range(9):
        send(log, sequence)
    for sequence in range(7):
        send(log, sequence, epoch=1)
    assert refused(log, 1, epoch=1) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert refused(log, 8, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 1, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_old_batches_are_known_where_sequences_wrap_around() -> None:
    """2147483647 is followed by 0."""
    log = open_log()
    for sequence in (2147483645, 2147483646, 2147483647, *range(6)):
        send(log, sequence)
    for sequence in (2147483645, 2147483647, 0):
        assert refused(log, sequence) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert refused(log, 2147483644) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 7) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_gap_is_refused() -> None:
    """A lost batch in between would break the order."""
    log = open_log()
    send(log, 0)
    assert refused(log, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1) == (1, False)


def test_unknown_producer_may_begin_anywhere() -> None:
    """Its earlier records may have been deleted by retention (KIP-360)."""
    log = open_log()
    assert send(log, 41) == (0, False)
    assert refused(log, 41 + 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_wraps_after_2_to_31_minus_1() -> None:
    """A batch may even straddle the wrap, and is known again."""
    log = open_log()
    send(log, 2**31 - 3, 2)
    assert send(log, 2**31 - 1, 3) == (2, False)
    assert send(log, 2, 1) == (5, False)
    assert send(log, 2**31 - 1, 3) == (2, True)


def test_older_epoch_is_fenced() -> None:
    """A zombie producer is refused."""
    log = open_log()
    send(log, 0, epoch=3)
    assert refused(log, 1, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_new_epoch_begins_at_sequence_0() -> None:
    """Any other beginning is a gap; old sequences no longer count as duplicates."""
    log = open_log()
    send(log, 0)
    assert refused(log, 1, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1) == (1, False)


def test_sequences_survive_a_restart() -> None:
    """After a crash the state is what the log says; a retry is still a duplicate (P9)."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for sequence in range(3):
        send(log, sequence)
    filesystem.crash()
    log = open_log(filesystem)
    assert send(log, 2) == (2, True)
    assert send(log, 3) == (3, False)


def test_state_comes_from_the_snapshot_after_a_clean_stop() -> None:
    """Only the last batch of each producer is in a snapshot; those before it are in the log."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for sequence in range(7):
        send(log, sequence)
    log.close(clean=True)
    log = open_log(filesystem, clean=True, recovery_point=7)
    assert [entry.last_sequence for entry in log.producers.described()] == [6]
    assert [send(log, sequence) for sequence in range(2, 7)] == [
        (offset, True) for offset in range(2, 7)
    ]
    assert refused(log, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batches_of_other_producers_between_hide_none() -> None:
    """Many small batches of others may stand between a producer's last ones."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for sequence in range(3):
        send(log, sequence)
        for other in range(200):
            send(log, sequence, who=100 + other)
    log.close(clean=True)
    end = log.log_end_offset
    log = open_log(filesystem, clean=True, recovery_point=end)
    assert send(log, 1) == (201, True)
    assert send(log, 0, who=299) == (200, True)


def test_silent_producer_is_forgotten() -> None:
    """producer.id.expiration.ms, counted from its last batch's timestamp."""
    log = open_log()
    send(log, 0, timestamp=1_000)
    log.producers.expire(86_400_999, 86_400_000)
    assert refused(log, 5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.producers.expire(86_401_000, 86_400_000)
    assert send(log, 5) == (1, False)


def test_producer_with_an_open_transaction_does_not_expire() -> None:
    """Its transaction still holds back the last stable offset."""
    log = open_log()
    send(log, 0, attributes=TRANSACTIONAL)
    log.producers.expire(10**15, 86_400_000)
    assert log.producers.last_stable_offset(1, log.log_start_offset) == 0


def test_open_transaction_holds_back_the_last_stable_offset() -> None:
    """Below it nothing is undecided; the marker must be committed itself."""
    log = open_log()
    append(log)
    send(log, 0, attributes=TRANSACTIONAL)
    append(log)
    assert log.producers.last_stable_offset(3, log.log_start_offset) == 1
    assert log.producers.last_stable_offset(1, log.log_start_offset) == 1
    assert end(log, commit=True) == 3
    assert log.producers.last_stable_offset(3, log.log_start_offset) == 1
    assert log.producers.last_stable_offset(4, log.log_start_offset) == 4


def test_aborted_transaction_is_indexed_and_a_committed_one_is_not() -> None:
    """Readers of committed records are told what to leave out."""
    log = open_log()
    send(log, 0, attributes=TRANSACTIONAL)
    end(log, commit=True)
    send(log, 1, attributes=TRANSACTIONAL)
    end(log, commit=False)
    assert log.segments.aborted_transactions(0, 4) == [(7, 2, 3, 4)]
    assert log.segments.aborted_transactions(0, 2) == []


def test_plain_batch_inside_a_transaction_is_refused() -> None:
    """A producer in a transaction writes nothing outside of it."""
    log = open_log()
    send(log, 0, attributes=TRANSACTIONAL)
    assert refused(log, 1) == ErrorCode.INVALID_TXN_STATE


def test_marker_of_an_older_coordinator_or_producer_is_fenced() -> None:
    """A zombie coordinator cannot end what its successor decides."""
    log = open_log()
    send(log, 0, epoch=1, attributes=TRANSACTIONAL)
    end(log, commit=True, epoch=1, coordinator_epoch=5)
    with pytest.raises(OttlaError) as caught:
        end(log, commit=False, epoch=1, coordinator_epoch=4)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(OttlaError) as caught:
        end(log, commit=False, epoch=0, coordinator_epoch=5)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(clean: bool) -> None:
    """Open ones from the snapshot or the log, aborted ones from the index or the log."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    send(log, 0, attributes=TRANSACTIONAL)
    end(log, commit=False)
    send(log, 1, attributes=TRANSACTIONAL)
    log.close(clean=clean)
    log = open_log(filesystem, clean=clean, recovery_point=3 if clean else 0)
    assert log.segments.aborted_transactions(0, 3) == [(7, 0, 1, 2)]
    assert log.producers.last_stable_offset(3, log.log_start_offset) == 2
    assert end(log, commit=False) == 3
    assert log.segments.aborted_transactions(0, 4) == [(7, 0, 1, 2), (7, 2, 3, 4)]


def test_a_partition_remembers_so_many_producers() -> None:
    """A client may invent an id for each batch: those that appended last are known."""
    log = open_log()
    log.producers = ProducerStates(num_max=20)
    send(log, 0, who=1, attributes=TRANSACTIONAL)
    for who in range(2, 21):
        send(log, 0, who=who)
    send(log, 1, who=2)
    assert len(log.producers.entries) == 20
    send(log, 0, who=100)
    assert set(log.producers.entries) == {1, 2, *range(5, 21), 100}
    assert send(log, 1, who=2)[1]
    assert (log.producers.take_forgotten(), log.producers.take_forgotten()) == (2, 0)
    # As after the expiry of its state: any sequence begins anew.
    assert not send(log, 7, who=3)[1]


def test_a_snapshot_packs_few_producers_however_many_there_are() -> None:
    """The others were packed when they changed: the event loop is not held by 100,000 of them."""
    log = open_log()
    for who in range(1, 2_001):
        send(log, 0, who=who)
    assert sum(not entry.packed for entry in log.producers.entries.values()) <= 500
    send(log, 1, who=3)
    send(log, 0, attributes=TRANSACTIONAL)
    end(log, commit=True, coordinator_epoch=4)
    packed = log.producers.packed()
    for entry in log.producers.entries.values():
        entry.pack()
    assert packed == [entry.packed for entry in log.producers.entries.values()]
    read = {entry.producer_id: entry for entry in decode(encode(packed))}
    assert (read[3].last_sequence, read[4].last_sequence, read[7].coordinator_epoch) == (1, 0, 4)


def test_a_snapshot_is_encoded_by_the_job_not_by_the_loop() -> None:
    """Later appends do not change it."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    send(log, 0)
    job = log.prepare_flush(checkpoint=True)
    contents = [file.content for file in job.side_files if file.path.endswith(".snapshot")]
    assert [callable(content) for content in contents] == [True]
    send(log, 1)
    job.run()
    (name,) = [name for name in filesystem.listdir(log.folder) if name.endswith(".snapshot")]
    (entry,) = decode(filesystem.read_bytes(f"{log.folder}/{name}"))
    assert entry.last_sequence == 0
