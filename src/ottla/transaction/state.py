"""The states of a transactional id, with Kafka's numbers and names."""

from enum import IntEnum


class TransactionState(IntEnum):
    """Numbers are those in `__transaction_state`; `label` is the name in tools."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    # Kafka's step before an abort by the coordinator; here that abort is one step, so this is
    # unused.
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


# The outcome is decided but not yet written to all partitions.
PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
# No transaction is in progress.
IDLE = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
LABELS = {state.label: state for state in TransactionState}
