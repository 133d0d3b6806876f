"""A copier with kafka-python: the group gives it partitions, and fences it by its generation.

Written as docs/reference/clients.md advises: a step that takes too long ends the process, and after
an error another producer goes on.
"""

import faulthandler

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import (
    InvalidProducerEpochError,
    KafkaError,
    ProducerFencedError,
    TransactionalIdAuthorizationFailedError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

from chaos.transactions.task import ABORTED, COMMITTED, HEADER, CopyTask, Notes

_PATIENCE_S = 60.0
# The library's calls of a transaction have no limit. This is more than a transaction may take.
_STEP_S = 60.0
_POLL_MS = 500
# Another process has taken its place, or none of its kind may go on.
_FATAL = (ProducerFencedError, InvalidProducerEpochError, TransactionalIdAuthorizationFailedError)


class KafkaPython:
    """Raises KafkaError where only another process can go on."""

    def __init__(self, task: CopyTask) -> None:
        self._task = task
        self._notes = Notes(task)
        self._producer = self._new_producer()
        self._consumer = KafkaConsumer(
            task.source,
            bootstrap_servers=task.bootstrap,
            group_id=task.group,
            session_timeout_ms=10_000,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=task.size,
        )

    def step(self) -> None:
        """Pass a batch on, if there is one. Ends the process if that takes too long."""
        faulthandler.dump_traceback_later(_STEP_S, exit=True)
        try:
            self._step()
        finally:
            faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._producer.close()

    def _new_producer(self) -> KafkaProducer:
        producer = KafkaProducer(
            bootstrap_servers=self._task.bootstrap,
            transactional_id=self._task.transactional_id,
            transaction_timeout_ms=20_000,
        )
        producer.init_transactions()
        return producer

    def _step(self) -> None:
        polled = self._consumer.poll(timeout_ms=_POLL_MS)
        values = [record.value for records in polled.values() for record in records]
        if not values:
            return
        transaction = self._notes.name(len(values))
        try:
            self._pass_on(values, transaction)
        except _FATAL:
            raise
        except KafkaError:
            self._give_up(transaction)
            # Offsets that were refused would go with its next transaction.
            self._producer.close(_PATIENCE_S)
            self._producer = self._new_producer()

    def _pass_on(self, values: list[bytes], transaction: str) -> None:
        self._producer.begin_transaction()
        sent = [
            self._producer.send(
                self._task.target,
                value,
                partition=int(value) % self._task.partitions,
                headers=[(HEADER, transaction.encode())],
            )
            for value in values
        ]
        positions = {
            partition: OffsetAndMetadata(self._consumer.position(partition), "", -1)
            for partition in self._consumer.assignment()
        }
        self._producer.send_offsets_to_transaction(positions, self._consumer.group_metadata())
        if self._notes.is_to_be_given_up():
            for each in sent:
                each.get(_PATIENCE_S)
            self._give_up(transaction)
        else:
            self._producer.commit_transaction()
            self._notes.note(transaction, COMMITTED)

    def _give_up(self, transaction: str) -> None:
        self._producer.abort_transaction()
        self._notes.note(transaction, ABORTED)
        for partition in self._consumer.assignment():
            self._go_back(partition)

    def _go_back(self, partition: TopicPartition) -> None:
        committed = self._consumer.committed(partition)
        if committed is None:
            self._consumer.seek_to_beginning(partition)
        else:
            self._consumer.seek(partition, committed)
