"""A copier with librdkafka: the group gives it partitions, and fences it by its generation."""

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from chaos.transactions.task import ABORTED, COMMITTED, HEADER, CopyTask, Notes
from rig.consumer import records_among

_PATIENCE_S = 60.0
_EARLIEST = 0


class Librdkafka:
    """Raises KafkaException where only another process can go on."""

    def __init__(self, task: CopyTask) -> None:
        self._task = task
        self._notes = Notes(task)
        self._producer = Producer(
            {
                "bootstrap.servers": task.bootstrap,
                "metadata.recovery.strategy": task.recovery,
                "transactional.id": task.transactional_id,
                "transaction.timeout.ms": 20_000,
                "log_level": 0,
            }
        )
        _persist(lambda: self._producer.init_transactions(_PATIENCE_S))
        self._consumer = Consumer(
            {
                "bootstrap.servers": task.bootstrap,
                "metadata.recovery.strategy": task.recovery,
                "group.id": task.group,
                "session.timeout.ms": 10_000,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([task.source])

    def step(self) -> None:
        """Pass a batch on, if there is one."""
        records = records_among(self._consumer.consume(self._task.size, 0.5))
        if not records:
            return
        transaction = self._notes.name(len(records))
        try:
            self._pass_on(records, transaction)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if not error.txn_requires_abort():
                raise
            self._give_up(transaction)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _pass_on(self, records: list[Message], transaction: str) -> None:
        self._producer.begin_transaction()
        for record in records:
            self._producer.produce(
                self._task.target,
                record.value(),
                partition=int(record.value()) % self._task.partitions,
                headers={HEADER: transaction},
            )
        positions = [
            each
            for each in self._consumer.position(self._consumer.assignment())
            if each.offset >= 0
        ]
        member = self._consumer.consumer_group_metadata()
        _persist(lambda: self._producer.send_offsets_to_transaction(positions, member, _PATIENCE_S))
        if self._notes.is_to_be_given_up():
            _persist(lambda: self._producer.flush(_PATIENCE_S))
            self._give_up(transaction)
        else:
            _persist(lambda: self._producer.commit_transaction(_PATIENCE_S))
            self._notes.note(transaction, COMMITTED)

    def _give_up(self, transaction: str) -> None:
        _persist(lambda: self._producer.abort_transaction(_PATIENCE_S))
        self._notes.note(transaction, ABORTED)
        assigned = self._consumer.assignment()
        for each in self._consumer.committed(assigned, _PATIENCE_S):
            offset = each.offset if each.offset >= 0 else _EARLIEST
            self._consumer.seek(TopicPartition(each.topic, each.partition, offset))


def _persist(call: Callable[[], object]) -> None:
    """Repeat what the library says may be repeated. Raises KafkaException of another kind."""
    while True:
        try:
            call()
        except KafkaException as raised:
            if not raised.args[0].retriable():
                raise
        else:
            return
