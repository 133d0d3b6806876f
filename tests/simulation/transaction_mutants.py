"""Rules of transactions, each broken by itself: what the simulation has to find."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.partition import Partition
from ottla.broker.transactions.marker_writing import Outcome
from ottla.broker.transactions.opening import Openings
from ottla.group.coordinator import Coordinator as GroupCoordinator
from ottla.storage.log import Log
from ottla.storage.producer_state import ProducerStates
from ottla.transaction import ending, initializing
from ottla.transaction.coordinator import Coordinator
from ottla.transaction.turn import Decision

Mutate = Callable[[pytest.MonkeyPatch], None]


def aborted_are_not_named(patch: pytest.MonkeyPatch) -> None:
    """Readers of committed records are not told which transactions were aborted."""
    patch.setattr(Log, "aborted_transactions", lambda *_: [])


def stable_offset_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """Readers of committed records read up to the high watermark."""
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def offsets_count_before_the_marker(patch: pytest.MonkeyPatch) -> None:
    """Offsets in a transaction count at once, whatever becomes of it."""
    take_in = GroupCoordinator.apply_pending

    def apply(self: GroupCoordinator, producer_id: int, record: Any) -> None:
        take_in(self, producer_id, record)
        self.end_transaction(producer_id, is_commit=True)

    patch.setattr(GroupCoordinator, "apply_pending", apply)


def epoch_stays(patch: pytest.MonkeyPatch) -> None:
    """The end of a transaction does not raise the epoch (S22, before KIP-890)."""

    def end(known: Any, wish: Any, _fresh: Any, timestamp_ms: int) -> Any:
        return ending._end_with_same_epoch(known, wish, timestamp_ms)

    patch.setattr(ending, "_end_with_next_epoch", end)
    patch.setattr(Outcome, "raises_epoch", property(lambda _: False))


def decided_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new coordinator does not go on with what was decided (S23)."""
    patch.setattr(Coordinator, "start", lambda _: Decision())


def nobody_is_fenced(patch: pytest.MonkeyPatch) -> None:
    """Who begins under an id leaves the one before it what it had (S24)."""
    initialize = initializing.initialize

    def share(known: Any, wish: Any, fresh: Any, timestamp_ms: int) -> Any:
        if known is None or known.is_prepared:
            return initialize(known, wish, fresh, timestamp_ms)
        return initializing.Verdict(ErrorCode.NONE, identity=known.identity)

    patch.setattr(initializing, "initialize", share)


def nothing_is_verified(patch: pytest.MonkeyPatch) -> None:
    """No partition becomes part of a transaction, and none is asked for (S21)."""
    patch.setattr(Openings, "is_needed", lambda *_, **__: False)
    patch.setattr(ProducerStates, "check_open", lambda *_: None)


def nothing_is_overdue(patch: pytest.MonkeyPatch) -> None:
    """A transaction that takes too long is never aborted."""
    patch.setattr(ending, "is_overdue", lambda *_: False)
