"""The coordinator of share state: who may write, and what survives."""

from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.share.coordinator import (
    KeyAnswer,
    ShareCoordinator,
    ShareDecision,
    ShareStateSettings,
    Write,
)
from ottla.share.records import (
    UNKNOWN,
    ShareKey,
    ShareState,
    SnapshotRecord,
    UpdateRecord,
    decode,
    encode,
)
from ottla.share.states import DeliveryState, StateBatch

KEY = ShareKey("g", UUID(int=7), 3)
ACCEPTED = StateBatch(5, 6, DeliveryState.ACKNOWLEDGED, 1)


class Log:
    """A coordinator and the log that it writes."""

    def __init__(self, *, updates_per_snapshot: int = 500) -> None:
        self.settings = ShareStateSettings(updates_per_snapshot, snapshot_interval_ms=1_000)
        self.coordinator = ShareCoordinator(self.settings)
        self.written: list[tuple[bytes, bytes | None]] = []

    def carry_out(self, decision: ShareDecision) -> KeyAnswer:
        for record in decision.records:
            self.written.append(encode(record))
            self.coordinator.apply(record, len(self.written) - 1)
        answered = [reply.message for reply in decision.replies]
        return answered[0] if answered else KeyAnswer()

    def initialize(self, state_epoch: int, start_offset: int = UNKNOWN) -> ErrorCode:
        decision = self.coordinator.initialize("t", KEY, state_epoch, start_offset, 100)
        return self.carry_out(decision).code

    def read(self, leader_epoch: int) -> KeyAnswer:
        return self.carry_out(self.coordinator.read("t", KEY, leader_epoch))

    def write(
        self, state_epoch: int, leader_epoch: int, start: int, *batches: StateBatch
    ) -> KeyAnswer:
        write = Write(state_epoch, leader_epoch, start, 2, batches)
        return self.carry_out(self.coordinator.write("t", KEY, write, 200))

    def replayed(self, since: int = 0) -> ShareCoordinator:
        coordinator = ShareCoordinator(self.settings)
        for offset, (key, value) in enumerate(self.written):
            record = decode(key, value)
            assert record is not None
            if offset >= since:
                coordinator.apply(record, offset)
        return coordinator


def test_state_that_was_never_begun_cannot_be_read_or_written() -> None:
    """The group's coordinator begins it before any member gets the partition."""
    log = Log()
    assert log.read(0).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert log.write(0, 0, 0).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_of_an_old_term_is_refused() -> None:
    """Who has read in a later term fences those before, for reads and writes."""
    log = Log()
    log.initialize(1)
    assert log.read(4).code is ErrorCode.NONE
    assert log.read(3).code is ErrorCode.FENCED_LEADER_EPOCH
    assert log.write(1, 3, 0).code is ErrorCode.FENCED_LEADER_EPOCH
    assert log.write(1, 4, 0).code is ErrorCode.NONE


def test_writes_of_state_that_began_anew_since_are_refused() -> None:
    """A reset of offsets raises the state epoch; one that is unknown is refused as well."""
    log = Log()
    log.initialize(1)
    log.initialize(5, start_offset=20)
    assert log.write(1, 0, 0, ACCEPTED).code is ErrorCode.FENCED_STATE_EPOCH
    assert log.write(6, 0, 0).code is ErrorCode.INVALID_REQUEST
    assert log.initialize(4) is ErrorCode.FENCED_STATE_EPOCH
    assert log.read(0).state == ShareState(5, 20, 0, 0, (), 1, 100, 100)


def test_beginning_again_in_the_same_epoch_undoes_nothing() -> None:
    """A repeated request may come late."""
    log = Log()
    log.initialize(1)
    log.write(1, 0, 5, ACCEPTED)
    assert log.initialize(1) is ErrorCode.NONE
    state = log.read(0).state
    assert state is not None
    assert (state.start_offset, state.batches) == (5, (ACCEPTED,))


def test_a_start_never_moves_back() -> None:
    """A write that comes late, or says nothing of the start, leaves it."""
    log = Log()
    log.initialize(1, start_offset=0)
    log.write(1, 0, 5)
    log.write(1, 0, 3)
    log.write(1, 0, UNKNOWN)
    state = log.read(0).state
    assert state is not None
    assert state.start_offset == 5


def test_the_log_gives_the_state_back() -> None:
    """Snapshots, updates and tombstones are replayed in their order, as Kafka's bytes."""
    log = Log(updates_per_snapshot=2)
    log.initialize(1, start_offset=0)
    for offset in range(7):
        log.write(1, 0, 0, StateBatch(offset * 2, offset * 2, DeliveryState.ACKNOWLEDGED, 1))
    log.read(9)
    assert log.replayed().states == log.coordinator.states
    log.carry_out(log.coordinator.delete("t", KEY))
    assert log.replayed().states == {}


def test_after_so_many_updates_a_snapshot_is_written() -> None:
    """What is before it in the log is needed no more."""
    log = Log(updates_per_snapshot=2)
    log.initialize(1, start_offset=0)
    for offset in range(4):
        log.write(1, 0, 0, StateBatch(offset * 2, offset * 2, DeliveryState.ACKNOWLEDGED, 1))
    kinds = [type(decode(key, value)) for key, value in log.written]
    assert kinds == [SnapshotRecord, UpdateRecord, UpdateRecord, SnapshotRecord, UpdateRecord]
    assert log.coordinator.needed_from(99) == 3
    assert log.replayed(since=3).states == log.coordinator.states


def test_old_snapshots_are_written_anew() -> None:
    """A partition that nobody reads does not keep the log from being cut."""
    log = Log()
    log.initialize(1, start_offset=0)
    log.write(1, 0, 5, ACCEPTED)
    log.carry_out(log.coordinator.refresh(1_099))
    assert log.coordinator.needed_from(99) == 0
    log.carry_out(log.coordinator.refresh(1_100))
    assert log.coordinator.needed_from(99) == 2
    assert log.replayed(since=2).states == log.coordinator.states


def test_nothing_is_needed_of_a_log_without_states() -> None:
    """All of it may go once all state is deleted."""
    log = Log()
    log.initialize(1)
    log.carry_out(log.coordinator.delete("t", KEY))
    assert log.coordinator.needed_from(99) == 99


def test_a_summary_fences_nobody() -> None:
    """People may look; of what never began they see that it is unknown."""
    log = Log()
    assert log.carry_out(log.coordinator.summary("t", KEY)).state == ShareState(0, UNKNOWN)
    log.initialize(1, start_offset=4)
    assert log.carry_out(log.coordinator.summary("t", KEY)).state == ShareState(
        1, 4, 0, 0, (), 0, 100, 100
    )
    assert len(log.written) == 1


def test_state_whose_snapshot_was_lost_goes_on_from_its_updates() -> None:
    """One damaged record costs what only that record said; a fenced leader stays fenced."""
    log = Log()
    log.initialize(1, 5)
    log.write(1, 4, 6, ACCEPTED)
    log.coordinator = log.replayed(since=1)
    assert log.read(4).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert log.initialize(3) is ErrorCode.NONE
    for coordinator in (log.coordinator, log.replayed(), log.replayed(since=1)):
        state = coordinator.states[KEY]
        assert (state.state_epoch, state.start_offset, state.leader_epoch) == (3, 6, 4)
        assert state.batches == (StateBatch(6, 6, DeliveryState.ACKNOWLEDGED, 1),)


def test_lost_state_that_begins_at_a_given_offset_forgets_its_updates() -> None:
    """An administrator's offset counts; so does a deletion."""
    log = Log()
    log.initialize(1, 5)
    log.write(1, 4, 6, ACCEPTED)
    log.coordinator = log.replayed(since=1)
    log.initialize(3, 2)
    assert log.coordinator.states[KEY].start_offset == 2
    assert log.coordinator.states[KEY].batches == ()
    log.coordinator = log.replayed(since=1)
    assert log.coordinator.states[KEY].start_offset == 2
    log.written.pop()
    log.coordinator = log.replayed(since=1)
    log.carry_out(log.coordinator.delete("t", KEY))
    log.coordinator = log.replayed(since=1)
    log.initialize(4)
    assert log.coordinator.states[KEY].start_offset == UNKNOWN
