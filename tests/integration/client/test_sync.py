"""The plain synchronous face: threads, no event loop in sight."""

import threading

import pytest

from ottla.client import ClientError, ConsumerOptions, ProducerOptions, TopicPartition, sync
from ottla.client.common.errors import ClientClosed


def test_many_threads_may_send_through_one_producer(bootstrap, make_topic) -> None:
    """Every record arrives once, each thread's in its order."""
    topic = make_topic()
    options = ProducerOptions(batch_size=4_096, buffer_memory=65_536)
    with sync.Producer(bootstrap, **options) as producer:

        def send(name: int) -> None:
            for number in range(1_000):
                producer.send(topic, b"%d" % number, key=b"%d" % name)

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    seen: dict[bytes | None, list[int]] = {}
    with sync.Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        for count, record in enumerate(consumer, start=1):
            seen.setdefault(record.key, []).append(int(record.value or b""))
            if count == 4_000:
                break
    assert seen == {b"%d" % name: list(range(1_000)) for name in range(4)}


def test_a_delivery_can_be_waited_for(bootstrap, make_topic) -> None:
    """Asynchronous sending from plain code: send, go on, wait later (P7)."""
    topic = make_topic()
    with sync.Producer(bootstrap) as producer:
        deliveries = [producer.send(topic, b"%d" % number) for number in range(10)]
        assert deliveries[-1].result(60).base_offset == 0


def test_records_sent_alone_go_after_the_linger(bootstrap, make_topic) -> None:
    """Fire and forget, without flush: the background thread sends them (P7)."""
    topic = make_topic()
    with sync.Producer(bootstrap) as producer, sync.Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        producer.send(topic, b"one")
        assert next(iter(consumer)).value == b"one"


def test_breaking_off_an_iteration_skips_nothing(bootstrap, make_topic) -> None:
    """The next loop, or poll, goes on with the next record; positions are exact."""
    topic = make_topic()
    with sync.Producer(bootstrap) as producer:
        producer.send_batch(topic, [b"%d" % number for number in range(20)])
    with sync.Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        offsets = []
        for record in consumer:
            offsets.append(record.offset)
            if record.offset == 4:
                break
        assert consumer.position(TopicPartition(topic, 0)) == 5
        offsets.append(next(iter(consumer)).offset)
        rest = consumer.poll()
        assert offsets + [record.offset for record in rest] == list(range(20))


def test_raw_batches_are_polled(bootstrap, make_topic) -> None:
    """For tools that pass batches on."""
    topic = make_topic()
    with sync.Producer(bootstrap) as producer:
        producer.send_and_wait(topic, b"v")
    with sync.Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        (raw,) = consumer.poll_batches(60)
        assert (raw.topic, raw.high_watermark) == (topic, 1)


def test_commits_work_from_plain_code(bootstrap, make_topic, group) -> None:
    """Exactly what was handed out."""
    topic = make_topic()
    with sync.Producer(bootstrap) as producer:
        producer.send_batch(topic, [b"v"] * 5)
    options = ConsumerOptions(group_id=group, enable_auto_commit=False)
    with sync.Consumer(bootstrap, **options) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            if record.offset == 2:
                consumer.commit()
                break
        partition = TopicPartition(topic, 0)
        assert consumer.committed(partition) == 3


def test_a_closed_client_says_so(bootstrap, make_topic) -> None:
    """And closing twice is harmless."""
    producer = sync.Producer(bootstrap)
    producer.close()
    producer.close()
    with pytest.raises(ClientClosed):
        producer.send(make_topic(), b"v")


def test_settings_that_cannot_work_are_refused_at_once() -> None:
    """Before anything is sent, and without leaving a thread behind."""
    before = threading.active_count()
    with pytest.raises(ClientError, match="idempotence needs acks='all'"):
        sync.Producer("127.0.0.1:1", acks=1, enable_idempotence=True)
    with pytest.raises(ClientError, match="compression_type is 'rar'"):
        sync.Producer("127.0.0.1:1", compression_type="rar")
    with pytest.raises(ClientError, match="'earliest', 'latest', 'none'"):
        sync.Consumer("127.0.0.1:1", auto_offset_reset="middle")
    assert threading.active_count() == before


@pytest.mark.parametrize("name", [b"flights", 5, None])
def test_a_topic_that_is_no_string_is_refused_and_spoils_nothing(
    bootstrap, make_topic, name
) -> None:
    """The next record goes where it belongs."""
    topic = make_topic()
    with sync.Producer(bootstrap) as producer:
        with pytest.raises(ClientError, match=r"topic is .*; give a str"):
            producer.send(name, b"lost")
        producer.send(topic, b"kept")
        producer.flush()
    with sync.Consumer(bootstrap) as consumer:
        assert consumer.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 1}
