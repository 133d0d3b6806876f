"""Seventy-five calls that users of kafka-python, confluent-kafka and aiokafka would type.

They were written before their author had read ottla.client, and stay as they were written. A call
finds: `host`, the address of a broker; `topic`, a topic of two partitions with the values
b"0", b"1" and b"2" and the key b"k" in each; `new`, the name of no topic; `group`, the name of no
group; Producer, Consumer and Admin of its face; and `json`. A call of the asynchronous face is the
body of a coroutine.
"""

PRODUCER = (
    'producer = Producer(host); producer.send(topic, b"v"); producer.flush(); producer.close()',
    'with Producer(bootstrap_servers=host) as producer: producer.send(topic, b"v").result()',
    """
with Producer(bootstrap_servers=[host]) as producer:
    producer.send(topic, key=b"k", value=b"v").result(timeout=10)
""",
    'p = Producer({"bootstrap.servers": host}); p.produce(topic, b"v"); p.flush(); p.close()',
    """
with Producer(host, acks=1, compression="zstd") as producer:
    producer.send(topic, b"v").result()
""",
    'with Producer(host, acks="all", compression_type="gzip") as p: p.send(topic, b"v").result()',
    'with Producer(host, linger_ms=5, batch_size=65536) as p: p.send(topic, b"v").result()',
    'with Producer(host, client_id="billing") as p: p.send(topic, b"v").result()',
    """
with Producer(host, value_serializer=lambda v: json.dumps(v).encode()) as producer:
    producer.send(topic, {"amount": 7}).result()
""",
    'with Producer(host) as producer: producer.send(topic, "text", key="customer").result()',
    'with Producer(host) as p: assert p.send(topic, b"v", partition=1).result().partition == 1',
    'with Producer(host) as p: p.send(topic, b"v", headers=[("trace", b"1")]).result()',
    'with Producer(host) as p: p.send(topic, b"v", headers={"trace": b"1"}).result()',
    'with Producer(host) as p: p.send(topic, b"v", timestamp_ms=1_700_000_000_000).result()',
    """
with Producer(host) as producer:
    record = producer.send(topic, b"v", partition=0).result(timeout=10)
    assert (record.topic, record.partition, record.offset) == (topic, 0, 3)
""",
    """
seen = []
with Producer(host) as producer:
    producer.send(topic, b"v").add_callback(seen.append)
    producer.flush()
assert len(seen) == 1
""",
    'with Producer(host) as p: p.send(topic, b"v"); p.flush(timeout=10)',
    "with Producer(host) as producer: assert len(producer.partitions_for(topic)) == 2",
    'with Producer(host) as producer: producer.send(topic, None, key=b"k").result()',
    """
with Producer(host, transactional_id="copier") as producer:
    with producer.transaction():
        producer.send(topic, b"v")
""",
    """
with Producer(host, transactional_id="biller") as producer:
    producer.begin_transaction()
    producer.send(topic, b"v")
    producer.commit_transaction()
""",
    'with Producer(host, enable_idempotence=True) as p: p.send(topic, b"v").result()',
    """
with Producer(host) as producer:
    deliveries = [producer.send(topic, str(i)) for i in range(100)]
    producer.flush()
    assert all(delivery.done() for delivery in deliveries)
""",
    "with Producer(host) as producer: assert host in repr(producer)",
)

CONSUMER = (
    'with Consumer(host, topic, group="g") as consumer: consumer.poll(timeout=1)',
    """
with Consumer(host, topic, group_id=group, auto_offset_reset="earliest") as consumer:
    assert consumer.poll(timeout=30)
""",
    """
for record in Consumer(topic, bootstrap_servers=host, auto_offset_reset="earliest"):
    break
""",
    """
with Consumer(host, [topic], auto_offset_reset="earliest") as consumer:
    assert consumer.poll(timeout=30)
""",
    """
consumer = Consumer(host, group_id=group)
consumer.subscribe([topic])
assert topic in consumer.subscription()
consumer.close()
""",
    "with Consumer(host, group=group) as c: c.subscribe(topic); c.poll(timeout=1)",
    'with Consumer(host, group=group) as c: c.subscribe(pattern="^natural.*"); c.poll(timeout=1)',
    """
with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    for record in consumer:
        assert record.value == b"0"
        break
""",
    """
with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    for record in consumer.poll(30):
        print(record.topic, record.partition, record.offset, record.key, record.value)
""",
    'with Consumer(host, topic, group_id="g") as c: c.poll(timeout_ms=1000)',
    """
with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    assert len(consumer.poll(timeout=30, max_records=1)) == 1
""",
    """
from ottla.client import TopicPartition
with Consumer(host) as consumer:
    consumer.assign([TopicPartition(topic, 0)])
    assert len(consumer.assignment()) == 1
""",
    "with Consumer(host) as consumer: consumer.assign([(topic, 0)])",
    """
with Consumer(host, topic) as consumer:
    consumer.seek(topic, 0, 2)
    assert next(record for record in consumer if record.partition == 0).offset == 2
""",
    """
from ottla.client import TopicPartition
with Consumer(host) as consumer:
    consumer.assign([TopicPartition(topic, 1)])
    consumer.seek(TopicPartition(topic, 1), 1)
    assert next(iter(consumer)).offset == 1
""",
    """
with Consumer(host, topic) as consumer:
    consumer.seek_to_beginning()
    assert len(list(consumer.poll(timeout=30))) > 0
""",
    "with Consumer(host, topic) as consumer: consumer.seek_to_end(); consumer.poll(timeout=1)",
    """
from ottla.client import TopicPartition
with Consumer(host, topic, group_id=group, auto_offset_reset="earliest") as consumer:
    record = next(iter(consumer))
    consumer.commit()
    assert consumer.committed(TopicPartition(topic, record.partition)) > 0
""",
    """
with Consumer(host, topic, group=group, enable_auto_commit=False) as consumer:
    assert consumer.committed(topic, 0) is None
""",
    """
with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    record = next(iter(consumer))
    assert consumer.position(topic, record.partition) == 1
""",
    """
with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    consumer.pause(topic, 0)
    consumer.resume(topic, 0)
""",
    """
from ottla.client import TopicPartition
with Consumer(host) as consumer:
    end = consumer.end_offsets([TopicPartition(topic, 0)])
    assert end[TopicPartition(topic, 0)] == 3
""",
    """
from ottla.client import TopicPartition
with Consumer(host) as consumer:
    assert consumer.beginning_offsets([TopicPartition(topic, 1)])[(topic, 1)] == 0
""",
    """
c = Consumer({"bootstrap.servers": host, "group.id": group, "auto.offset.reset": "earliest"})
c.subscribe([topic])
c.poll(1.0)
c.close()
""",
    """
with Consumer(host, topic, group_id=group, enable_auto_commit=False, max_poll_records=10) as c:
    records = c.poll(timeout=30)
    c.commit()
""",
    'with Consumer(host, topic, isolation_level="read_committed") as c: c.poll(timeout=1)',
    """
with Consumer(host, topic, value_deserializer=json.loads, auto_offset_reset="earliest") as consumer:
    assert next(iter(consumer)).value == 0
""",
    "with Consumer(host) as consumer: assert len(consumer.partitions_for(topic)) == 2",
    """
with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    record = next(iter(consumer))
    assert record.timestamp > 1_700_000_000_000 and not record.headers and record.key == b"k"
    assert topic in repr(record)
""",
    'with Consumer(host, topic, group="g", session_timeout_ms=45_000) as c: assert "g" in repr(c)',
)

ASYNCHRONOUS = (
    'async with Producer(host) as producer: await producer.send_and_wait(topic, b"v")',
    """
producer = Producer(host)
await producer.start()
await producer.send(topic, b"v")
await producer.stop()
""",
    """
async with Producer(host, acks="all") as producer:
    delivery = await producer.send(topic, b"v")
    record = await delivery
    assert record.offset == 3
""",
    """
async with Producer(bootstrap_servers=host, compression="lz4") as producer:
    for number in range(10):
        await producer.send(topic, key=str(number), value=b"v")
    await producer.flush()
""",
    """
async with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    async for record in consumer:
        assert record.value == b"0"
        break
""",
    """
async with Consumer(host, topic, group_id=group, auto_offset_reset="earliest") as consumer:
    assert await consumer.poll(timeout=30)
    await consumer.commit()
""",
    """
async with Consumer(host, topic, auto_offset_reset="earliest") as consumer:
    record = await consumer.getone()
""",
    """
async with Producer(host, transactional_id="mover") as producer:
    async with producer.transaction():
        await producer.send(topic, b"v")
""",
    "async with Admin(host) as admin: assert topic in await admin.topics.list()",
)

ADMIN = (
    "with Admin(host) as admin: assert topic in admin.topics.list()",
    "with Admin(bootstrap_servers=host) as admin: assert topic in admin.list_topics()",
    "with Admin(host) as admin: admin.topics.create(new, partitions=3)",
    """
admin = Admin(host)
admin.topics.create(new, partitions=1, replication_factor=1)
admin.close()
""",
    'with Admin(host) as a: a.topics.create(new, config={"retention.ms": "60000"})',
    "with Admin(host) as admin: admin.topics.delete(topic)",
    "with Admin(host) as admin: assert len(admin.topics.describe(topic).partitions) == 2",
    "with Admin(host) as admin: assert group not in admin.groups.list()",
    """
with Consumer(host, topic, group_id=group, auto_offset_reset="earliest") as consumer:
    next(iter(consumer))
    consumer.commit()
with Admin(host) as admin:
    assert admin.groups.offsets(group)
""",
    "with Admin(host) as admin: print(admin.groups.describe(group))",
    'with Admin(host) as a: a.topics.alter(topic, {"retention.ms": "60000"})',
    "with Admin(host) as admin: assert len(admin.cluster.describe().brokers) == 1",
)
