"""Where offsets went that are no records any more."""

from ottla.base.ids import TopicPartition
from ottla.client.common.offset_account import CompactedBy, DeletedBy, LostBy, OffsetAccount
from ottla.diagnosis.retention import OffsetLoss, losses
from ottla.ledger.history import StartCause


def account(
    compacted: tuple[CompactedBy, ...] = (),
    deleted: tuple[DeletedBy, ...] = (),
    lost: tuple[LostBy, ...] = (),
    replaced: int = 0,
) -> OffsetAccount:
    return OffsetAccount(
        TopicPartition("t", 0),
        broker_id=1,
        leader_epoch=0,
        start=0,
        end=100,
        log_start_offset=0,
        high_watermark=100,
        log_end_offset=100,
        data=100,
        control=0,
        aborted=0,
        undecided=0,
        compacted=0,
        deleted=0,
        lost=0,
        unexplained=0,
        replaced=replaced,
        compacted_by=compacted,
        deleted_by=deleted,
        lost_by=lost,
    )


def test_each_loss_has_its_cause_and_its_time() -> None:
    """By term, in the order in which the account has them."""
    found = losses(
        account(
            (CompactedBy(4, 4, 60_000, 7),),
            (DeletedBy(0, 9, {StartCause.RETENTION_TIME: 5, StartCause.DELETE_RECORDS: 4}, 1, 2),),
            (LostBy(20, 23, 6, 90_000),),
            replaced=2,
        )
    )
    assert found == [
        OffsetLoss("compacted", 7, "pass 4", 60_000),
        OffsetLoss("deleted", 5, "retention.ms, 0 to 9", 2),
        OffsetLoss("deleted", 4, "delete-records, 0 to 9", 2),
        OffsetLoss("lost", 3, "election of epoch 6, 20 to 23", 90_000),
        OffsetLoss("replaced", 2, "lost offsets that are other records now, counted as those", -1),
    ]
    assert losses(account()) == []


def test_a_pass_that_is_not_known_exactly_says_what_is() -> None:
    """One of several, one of a leader that this replica was copied from, one before the ledger."""
    passes = (
        CompactedBy(5, 2, 1, 1),
        CompactedBy(0, 0, -1, 1),
        CompactedBy(-1, -1, -1, 1),
    )
    assert [loss.cause for loss in losses(account(passes))] == [
        "passes 2 to 5",
        "a leader, before this replica was copied from it",
        "before the ledger was kept",
    ]
