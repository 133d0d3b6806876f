"""Rules of transactions, each broken by itself: what the simulation has to find."""

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partition import Partition
from ottla.broker.transactions import marker_sender
from ottla.broker.transactions.marker_sender import MarkerSender
from ottla.broker.transactions.verification import Verifications
from ottla.group.coordinator.registry import Registry
from ottla.storage.producers.state import ProducerStates
from ottla.storage.segment.segments import Segments
from ottla.transaction import end_txn, init_producer_id
from ottla.transaction.coordinator import TransactionCoordinator
from ottla.transaction.transaction import TransactionDecision, TransactionOutcome


def aborted_are_not_named(patch: pytest.MonkeyPatch) -> None:
    """Readers of committed records are not told which transactions were aborted."""
    patch.setattr(Segments, "aborted_transactions", lambda *_: [])


def stable_offset_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """Readers of committed records read up to the high watermark."""
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def offsets_count_before_the_marker(patch: pytest.MonkeyPatch) -> None:
    """Offsets in a transaction count at once, whatever becomes of it."""
    take_in = Registry.apply_pending

    def apply(self: Registry, producer_id: int, record: Any) -> None:
        take_in(self, producer_id, record)
        self.end_transaction(producer_id, is_commit=True)

    patch.setattr(Registry, "apply_pending", apply)


def epoch_stays(patch: pytest.MonkeyPatch) -> None:
    """The end of a transaction does not raise the epoch (S22, before KIP-890)."""

    def end(known: Any, wish: Any, _fresh: Any, timestamp_ms: int) -> Any:
        return end_txn._end_with_same_epoch(known, wish, timestamp_ms)

    patch.setattr(end_txn, "_end_with_next_epoch", end)
    patch.setattr(TransactionOutcome, "raises_epoch", property(lambda _: False))


def decided_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new coordinator does not go on with what was decided (S23)."""
    patch.setattr(TransactionCoordinator, "start", lambda _: TransactionDecision())


def nobody_is_fenced(patch: pytest.MonkeyPatch) -> None:
    """Who begins under an id leaves the one before it what it had (S24)."""
    initialize = init_producer_id.initialize

    def share(known: Any, wish: Any, fresh: Any, timestamp_ms: int) -> Any:
        if known is None or known.is_prepared:
            return initialize(known, wish, fresh, timestamp_ms)
        return init_producer_id.Verdict(ErrorCode.NONE, identity=known.identity)

    patch.setattr(init_producer_id, "initialize", share)


def nothing_is_verified(patch: pytest.MonkeyPatch) -> None:
    """No partition becomes part of a transaction, and none is asked for (S21)."""
    patch.setattr(Verifications, "is_needed", lambda *_, **__: False)
    patch.setattr(ProducerStates, "check_open", lambda *_: None)


def nothing_is_overdue(patch: pytest.MonkeyPatch) -> None:
    """A transaction that takes too long is never aborted."""
    patch.setattr(end_txn, "is_overdue", lambda *_: False)


def late_markers_count(patch: pytest.MonkeyPatch) -> None:
    """A marker that comes once more ends the producer's next transaction (S25)."""
    check = ProducerStates.check_marker

    def judge(self: ProducerStates, header: Any, epoch: int, **_: bool) -> bool:
        return check(self, header, epoch)

    patch.setattr(ProducerStates, "check_marker", judge)


def old_coordinators_are_obeyed(patch: pytest.MonkeyPatch) -> None:
    """A marker is written whatever term its coordinator is of (S25)."""
    check = ProducerStates.check_marker

    def judge(
        self: ProducerStates, header: Any, _epoch: int, *, raises_epoch: bool = False
    ) -> bool:
        return check(self, header, 2**31 - 1, raises_epoch=raises_epoch)

    patch.setattr(ProducerStates, "check_marker", judge)


def markers_are_sent_once(patch: pytest.MonkeyPatch) -> None:
    """A leader that does not take a marker is not asked again, nor is the next one (S25)."""
    patch.setattr(MarkerSender, "_retry", lambda *_: None)


def deleted_topics_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    """A transaction is not over before a topic that is gone knows of it (S26)."""

    async def none_is(_store: Any, _partitions: Any) -> frozenset[Any]:
        return frozenset()

    patch.setattr(marker_sender, "deleted_among", none_is)
