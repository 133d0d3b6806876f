"""Verifies, before a transaction's first batch in a partition, that the transaction is open.

The answer holds until a marker is appended to the partition (KIP-890): a marker between request
and answer may have ended this very transaction, so the coordinator is then asked again.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partition import Partition
from ottla.broker.transactions.add_partitions_sender import AddPartitionsSender
from ottla.broker.transactions.transactions import Codes
from ottla.storage.producers.state import Guard
from ottla.transaction.transaction import ProducerIdentity

# A marker is appended in between once at most: that of the previous transaction.
_ATTEMPTS_MAX = 3

OnAnswer = Callable[[Guard | ErrorCode], None]


class _Key(NamedTuple):
    """The subject of a verification. `adds`: the partition is added to the transaction."""

    partition: Partition
    transactional_id: str
    identity: ProducerIdentity
    adds: bool


class Verifications:
    """All verifications in flight.

    A batch whose verification is under way already waits for the same answer, so that the batches
    of a producer are appended in the order in which they came.
    """

    def __init__(self, sender: AddPartitionsSender) -> None:
        self._sender = sender
        self._waiting: dict[_Key, list[OnAnswer]] = {}

    def __len__(self) -> int:
        """The number of verifications in flight."""
        return len(self._waiting)

    def is_needed(
        self, partition: Partition, transactional_id: str, identity: ProducerIdentity, *, adds: bool
    ) -> bool:
        """Whether to `verify`: not if the transaction has records in the partition already."""
        key = _Key(partition, transactional_id, identity, adds)
        return key in self._waiting or not partition.log.producers.is_open(*identity)

    def verify(
        self,
        partition: Partition,
        transactional_id: str,
        identity: ProducerIdentity,
        *,
        adds: bool,
        on_answer: OnAnswer,
    ) -> None:
        """Verify; `on_answer` receives the guard to append with, or the error."""
        key = _Key(partition, transactional_id, identity, adds)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(on_answer)
        else:
            self._waiting[key] = [on_answer]
            self._send(key, 1)

    def _send(self, key: _Key, attempt: int) -> None:
        name = key.partition.topic_partition
        producer_id = key.identity.producer_id
        guard = key.partition.log.producers.guard(producer_id)

        def on_codes(codes: Codes) -> None:
            code = codes.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if code is not ErrorCode.NONE:
                self._answer(key, code)
            elif (
                key.partition.log.producers.is_guarded(producer_id, guard)
                or attempt == _ATTEMPTS_MAX
            ):
                self._answer(key, guard)
            else:
                self._send(key, attempt + 1)

        self._sender.send(
            key.transactional_id,
            key.identity,
            frozenset({name}),
            adds=key.adds,
            on_answer=on_codes,
        )

    def _answer(self, key: _Key, answer: Guard | ErrorCode) -> None:
        for on_answer in self._waiting.pop(key):
            on_answer(answer)
