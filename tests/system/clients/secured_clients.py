"""Real clients behind one face: each call works, or raises its library's error."""

import asyncio
import ssl
from collections.abc import Coroutine
from typing import Any, Protocol

import aiokafka
import kafka as kafka_python
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import admin as librdkafka
from kafka.admin import ACLFilter, ACLOperation, ACLPermissionType, ResourcePatternFilter
from kafka.admin import NewTopic as PythonTopic
from kafka.admin import ResourceType as PythonResource
from rig.consumer import close
from rig.secured import PLAIN, SCRAM, Secured
from rig.tools import Tools

from tests.system.clients.test_java_clients import (
    consumer_of,
    items,
    producer_of,
    properties,
    record,
)

PATIENCE_S = 120


class Client(Protocol):
    """What is asked of every library; `None` where it has no such call."""

    @property
    def protocols(self) -> tuple[str, ...]:
        """Those of groups."""

    def produce(self, topic: str) -> None: ...

    def read(self, topic: str, group: str, protocol: str) -> None:
        """One record as a member of a group."""

    def transact(self, topic: str, transactional_id: str, group: str) -> None:
        """A record and an offset of a group, in one transaction."""

    def create(self, topic: str) -> None: ...

    def acls(self) -> None: ...

    def users(self) -> None: ...

    def code(self, error: BaseException) -> int:
        """Kafka's number of the library's error."""


class Librdkafka:
    protocols = ("classic", "consumer")

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = {**settings, "log_level": 0, "topic.metadata.refresh.interval.ms": 1000}

    @staticmethod
    def logs_in(broker: Secured, user: str, mechanism: str = SCRAM) -> "Librdkafka":
        return Librdkafka(
            {
                "bootstrap.servers": broker.sasl,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": broker.passwords[user],
                "ssl.ca.location": str(broker.files.authority),
            }
        )

    @staticmethod
    def with_certificate(broker: Secured) -> "Librdkafka":
        return Librdkafka(
            {
                "bootstrap.servers": broker.mutual,
                "security.protocol": "SSL",
                "ssl.ca.location": str(broker.files.authority),
                "ssl.certificate.location": str(broker.files.client),
                "ssl.key.location": str(broker.files.client),
            }
        )

    def produce(self, topic: str) -> None:
        producer = Producer({**self._settings, "enable.idempotence": True})
        failed: list[Any] = []
        producer.produce(topic, b"v", on_delivery=lambda e, _: failed.append(e) if e else None)
        assert producer.flush(PATIENCE_S) == 0
        if failed:
            raise KafkaException(failed[0])

    def read(self, topic: str, group: str, protocol: str) -> None:
        consumer = Consumer(
            {
                **self._settings,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([topic])
        try:
            for _ in range(PATIENCE_S * 2):
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    return
                if message is not None and not message.error().retriable():
                    raise KafkaException(message.error())
            raise AssertionError("neither a record nor an error came")
        finally:
            close(consumer)

    def transact(self, topic: str, transactional_id: str, group: str) -> None:
        producer = Producer({**self._settings, "transactional.id": transactional_id})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce(topic, b"v")
        consumer = Consumer({**self._settings, "group.id": group})
        offsets = [TopicPartition(topic, 0, 1)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        producer.commit_transaction(PATIENCE_S)
        close(consumer)

    def create(self, topic: str) -> None:
        admin = self._admin()
        made = admin.create_topics([librdkafka.NewTopic(topic, 1, 1)])
        made[topic].result(PATIENCE_S)

    def acls(self) -> None:
        every = librdkafka.AclBindingFilter(
            librdkafka.ResourceType.ANY,
            None,
            librdkafka.ResourcePatternType.ANY,
            None,
            None,
            librdkafka.AclOperation.ANY,
            librdkafka.AclPermissionType.ANY,
        )
        admin = self._admin()
        if not admin.describe_acls(every).result(PATIENCE_S):
            # The library drops the answer's error, from Kafka as from Ottla.
            raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))

    def users(self) -> None:
        admin = self._admin()
        found = admin.describe_user_scram_credentials(["ann"])
        found["ann"].result(PATIENCE_S)

    def _admin(self) -> librdkafka.AdminClient:
        return librdkafka.AdminClient(self._settings)

    def code(self, error: BaseException) -> int:
        assert isinstance(error, KafkaException), error
        return int(error.args[0].code())


class KafkaPython:
    protocols = ("classic",)

    def __init__(self, broker: Secured, user: str, mechanism: str = PLAIN) -> None:
        self._settings = {
            "bootstrap_servers": broker.sasl,
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(broker.files.authority),
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": broker.passwords[user],
        }

    def produce(self, topic: str) -> None:
        producer = kafka_python.KafkaProducer(**self._settings, enable_idempotence=True)
        try:
            producer.send(topic, b"v").get(PATIENCE_S)
        finally:
            producer.close(1)

    def read(self, topic: str, group: str, protocol: str) -> None:
        assert protocol == "classic"
        consumer = kafka_python.KafkaConsumer(
            topic,
            group_id=group,
            auto_offset_reset="earliest",
            consumer_timeout_ms=PATIENCE_S * 1000,
            **self._settings,
        )
        try:
            next(consumer)
        finally:
            consumer.close(autocommit=False)

    def transact(self, topic: str, transactional_id: str, group: str) -> None:
        producer = kafka_python.KafkaProducer(**self._settings, transactional_id=transactional_id)
        try:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"v")
            place = kafka_python.TopicPartition(topic, 0)
            offset = kafka_python.OffsetAndMetadata(1, "", -1)
            producer.send_offsets_to_transaction({place: offset}, group)
            producer.commit_transaction()
        finally:
            producer.close(1)

    def create(self, topic: str) -> None:
        self._admin().create_topics([PythonTopic(topic, 1, 1)])

    def acls(self) -> None:
        every = ACLFilter(
            principal=None,
            host=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=ResourcePatternFilter(
                PythonResource.ANY, None, kafka_python.admin.ACLResourcePatternType.ANY
            ),
        )
        self._admin().describe_acls(every)

    def users(self) -> None:
        self._admin().describe_user_scram_credentials(["ann"])

    def _admin(self) -> Any:
        return kafka_python.KafkaAdminClient(**self._settings)

    def code(self, error: BaseException) -> int:
        return _errno(error)


class Aiokafka:
    protocols = ("classic",)

    def __init__(self, broker: Secured, user: str, mechanism: str = SCRAM) -> None:
        self._settings = {
            "bootstrap_servers": broker.sasl,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(broker.files.authority)),
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": broker.passwords[user],
        }

    def produce(self, topic: str) -> None:
        async def main() -> None:
            producer = aiokafka.AIOKafkaProducer(**self._settings, enable_idempotence=True)
            await producer.start()
            try:
                await producer.send_and_wait(topic, b"v")
            finally:
                await producer.stop()

        _run(main())

    def read(self, topic: str, group: str, protocol: str) -> None:
        assert protocol == "classic"

        async def main() -> None:
            consumer = aiokafka.AIOKafkaConsumer(
                topic, group_id=group, auto_offset_reset="earliest", **self._settings
            )
            try:
                await consumer.start()
                await consumer.getone()
            finally:
                await consumer.stop()

        _run(main())

    def transact(self, topic: str, transactional_id: str, group: str) -> None:
        async def main() -> None:
            producer = aiokafka.AIOKafkaProducer(
                **self._settings, transactional_id=transactional_id
            )
            try:
                await producer.start()
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"v")
                    place = aiokafka.TopicPartition(topic, 0)
                    await producer.send_offsets_to_transaction({place: 1}, group)
            finally:
                await producer.stop()

        _run(main())

    def create(self, topic: str) -> None:
        async def main() -> None:
            admin = AIOKafkaAdminClient(**self._settings)
            await admin.start()
            try:
                answer = await admin.create_topics([NewTopic(topic, 1, 1)])
                error = aiokafka.errors.for_code(answer.topic_errors[0][1])
                if error is not aiokafka.errors.NoError:
                    raise error
            finally:
                await admin.close()

        _run(main())

    def acls(self) -> None:
        raise NotImplementedError

    users = acls

    def code(self, error: BaseException) -> int:
        return _errno(error)


class Java:
    protocols = ("classic", "consumer")

    def __init__(self, broker: Secured, jvm: Tools, user: str, mechanism: str = SCRAM) -> None:
        self._jvm = jvm
        self._bootstrap = broker.sasl
        self._settings = {
            name.replace(".", "_"): value
            for name, value in broker.settings(user, mechanism).items()
        }

    def produce(self, topic: str) -> None:
        producer = producer_of(self._jvm, self._bootstrap, **self._settings)
        try:
            producer.send(record(self._jvm, topic, "v")).get()
        finally:
            producer.close()

    def read(self, topic: str, group: str, protocol: str) -> None:
        consumer = consumer_of(
            self._jvm, self._bootstrap, group, group_protocol=protocol, **self._settings
        )
        consumer.subscribe([topic])
        try:
            for _ in range(PATIENCE_S * 2):
                if items(consumer.poll(self._jvm.jvm.java.time.Duration.ofMillis(500))):
                    return
            raise AssertionError("neither a record nor an error came")
        finally:
            consumer.close()

    def transact(self, topic: str, transactional_id: str, group: str) -> None:
        producer = producer_of(
            self._jvm, self._bootstrap, transactional_id=transactional_id, **self._settings
        )
        clients = self._jvm.jvm.org.apache.kafka
        try:
            producer.initTransactions()
            producer.beginTransaction()
            producer.send(record(self._jvm, topic, "v"))
            offsets = self._jvm.jvm.java.util.HashMap()
            place = clients.common.TopicPartition(topic, 0)
            offsets.put(place, clients.clients.consumer.OffsetAndMetadata(1))
            metadata = clients.clients.consumer.ConsumerGroupMetadata(group)
            producer.sendOffsetsToTransaction(offsets, metadata)
            producer.commitTransaction()
        finally:
            producer.close()

    def create(self, topic: str) -> None:
        made = self._jvm.jvm.org.apache.kafka.clients.admin.NewTopic
        optional = self._jvm.jvm.java.util.Optional.empty()
        self._asked(lambda admin: admin.createTopics([made(topic, optional, optional)]).all())

    def acls(self) -> None:
        every = self._jvm.jvm.org.apache.kafka.common.acl.AclBindingFilter.ANY
        self._asked(lambda admin: admin.describeAcls(every).values())

    def users(self) -> None:
        self._asked(lambda admin: admin.describeUserScramCredentials(["ann"]).all())

    def _asked(self, call: Any) -> None:
        settings = properties(self._jvm, bootstrap_servers=self._bootstrap, **self._settings)
        admin = self._jvm.jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            call(admin).get()
        finally:
            admin.close()

    def code(self, error: BaseException) -> int:
        thrown: Any = getattr(error, "java_exception", None)
        assert thrown is not None, error
        errors = self._jvm.jvm.org.apache.kafka.common.protocol.Errors
        # The one at the bottom is the broker's answer.
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        return int(errors.forException(thrown).code())


def _run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def _errno(error: BaseException) -> int:
    """That of kafka-python's and aiokafka's errors; one of them may stand in another."""
    found: BaseException | None = error
    while found is not None:
        for one in (found, *found.args):
            number = getattr(one, "errno", None)
            if isinstance(number, int) and number > 0:
                return number
        found = found.__cause__ or found.__context__
    raise AssertionError(f"{error!r} has no number of Kafka's") from error
