"""Records of share state with numbers that nobody writes: refused, or worked with to the end."""

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.share.coordinator import ShareCoordinator, ShareStateSettings, Write
from ottla.share.deliveries import Acknowledged, DeliveryLimits, Found
from ottla.share.partition import SharePartition
from ottla.share.records import ShareKey, ShareState, SnapshotRecord, UpdateRecord, decode, encode
from ottla.share.states import DeliveryState, StateBatch

KEY = ShareKey("g", UUID(int=7), 3)
INT16 = st.sampled_from([-(2**15), -1, 0, 1, 2**15 - 2, 2**15 - 1])
INT32 = st.sampled_from([-(2**31), -2, -1, 0, 1, 2**31 - 2, 2**31 - 1])
INT64 = st.sampled_from([-(2**63), -2, -1, 0, 1, 5, 2**31, 2**62, 2**63 - 2, 2**63 - 1])
BATCHES = st.lists(
    st.builds(StateBatch, INT64, INT64, st.sampled_from(DeliveryState), INT16), max_size=3
).map(tuple)
SNAPSHOTS = st.builds(
    SnapshotRecord,
    st.just(KEY),
    st.builds(ShareState, INT32, INT64, INT32, INT32, BATCHES, INT32, INT64, INT64),
)
UPDATES = st.builds(UpdateRecord, st.just(KEY), INT32, INT32, INT64, INT32, BATCHES)


def work_with(coordinator: ShareCoordinator, updates_per_snapshot: int) -> None:
    """What the leader of the partition does with the state, and its coordinator writes."""
    coordinator._settings = ShareStateSettings(updates_per_snapshot, 1_000)
    state = coordinator.states[KEY]
    partition = SharePartition(DeliveryLimits(100, 5, 1000), state.start_offset, state.batches)
    partition.on_log_start(0)
    offset = partition.next_offset()
    if offset is not None and offset < 2**63 - 1:
        for given in partition.acquire("m", offset, [Found(offset, offset)], 1, 0):
            partition.acknowledge("m", [Acknowledged(given.first, given.last, (2,))], 0)
    start, batches, complete, _ = partition.changes()
    write = Write(state.state_epoch, state.leader_epoch, start, complete, batches)
    for record in coordinator.write("t", KEY, write, 0).records:
        assert decode(*encode(record)) is not None
        coordinator.apply(record, 9)
    for record in coordinator.refresh(2**62).records:
        assert decode(*encode(record)) is not None


@given(SNAPSHOTS, UPDATES, st.sampled_from([0, 500]))
def test_no_stored_number_makes_a_later_record_impossible(
    snapshot: SnapshotRecord, update: UpdateRecord, updates_per_snapshot: int
) -> None:
    """A record out of range is one that cannot be read; of all others the work goes on."""
    coordinator = ShareCoordinator(ShareStateSettings(500, 1_000))
    assert snapshot.state is not None
    updates = replace(update, snapshot_epoch=snapshot.state.snapshot_epoch)
    for offset, record in enumerate((snapshot, updates)):
        try:
            found = decode(*encode(record))
        except OttlaError:
            continue
        assert found is not None
        coordinator.apply(found, offset)
    if KEY in coordinator.states:
        work_with(coordinator, updates_per_snapshot)
