"""The outcome of a transaction, as in the markers of its partitions."""

from typing import NamedTuple

from ottla.record.control import ControlType, EndTransactionMarker
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION


class TransactionOutcome(NamedTuple):
    """The end of a producer's transaction. `client_version` as in `transaction.Transaction`."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    client_version: int

    @property
    def marker(self) -> EndTransactionMarker:
        """The content of the control record that ends the transaction in a partition."""
        kind = ControlType.COMMIT if self.is_commit else ControlType.ABORT
        return EndTransactionMarker(kind, self.coordinator_epoch)

    @property
    def raises_epoch(self) -> bool:
        """Whether the marker carries the next epoch, so that a late one ends nothing (KIP-890)."""
        return self.client_version >= EPOCH_PER_TRANSACTION
