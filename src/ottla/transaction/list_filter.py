"""ListTransactions: the transactional ids of a coordinator (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.transaction.state import LABELS, TransactionState
from ottla.transaction.transaction import NO_TIMESTAMP, Transaction


@dataclass(frozen=True, slots=True)
class Filter:
    """The filters; empty ones match everything. `duration_ms` -1: any duration."""

    states: frozenset[TransactionState] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    # Whether the whole transactional id matches the requested pattern.
    matches: Callable[[str], bool] | None = None

    def passes(self, transactional_id: str, known: Transaction, timestamp_ms: int) -> bool:
        """Whether a transactional id in that state matches."""
        if self.states and known.state not in self.states:
            return False
        if self.producer_ids and known.producer_id not in self.producer_ids:
            return False
        if self.duration_ms >= 0 and not _has_lasted(known, timestamp_ms, self.duration_ms):
            return False
        return self.matches is None or self.matches(transactional_id)


def _has_lasted(known: Transaction, timestamp_ms: int, duration_ms: int) -> bool:
    if known.is_idle or known.start_timestamp_ms == NO_TIMESTAMP:
        return False
    return timestamp_ms - known.start_timestamp_ms > duration_ms


def read_states(names: Sequence[str]) -> tuple[frozenset[TransactionState], list[str]]:
    """The states of these names, and the unknown names."""
    known = frozenset(LABELS[name] for name in names if name in LABELS)
    return known, [name for name in names if name not in LABELS]
