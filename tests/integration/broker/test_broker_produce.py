"""Produce over loopback: acknowledgements, refusals, order."""

import asyncio
import struct
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.record.reader import batches, records
from ottla.storage.disk.memory_filesystem import MemoryFile, MemoryFileSystem
from ottla.wire.api import ApiKey
from ottla.wire.frames import decode_response
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.integration.broker.broker_client import (
    Client,
    batch,
    connected,
    fetch,
    fetched,
    produce,
    produced,
)


def run(coroutine):
    return asyncio.run(coroutine)


def values_in(buffer):
    return [
        record.value
        for position, header in batches(buffer)
        for record in records(buffer, position, header)
    ]


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
def test_every_version_appends_and_answers(version, acks):
    """Twice each: the second request takes the shortcut, and nobody can tell (P8)."""

    async def scenario():
        async with connected() as (_, client):
            first = produced(await client.call(produce("a", batch(b"1", b"2"), acks=acks), version))
            second = produced(await client.call(produce("a", batch(b"3"), acks=acks), version))
            third = produced(await client.call(produce("a", batch(b"4"), acks=acks), version))
            assert [a.error_code for a in (first, second, third)] == [0, 0, 0]
            assert [a.base_offset for a in (first, second, third)] == [0, 2, 3]
            answer = fetched(await client.call(fetch("a", 0), 12))
            assert values_in(bytes(answer.records)) == [b"1", b"2", b"3", b"4"]

    run(scenario())


def test_topics_are_named_by_id_from_version_13_on():
    """KIP-516."""

    async def scenario():
        async with connected() as (broker, client):
            topic_id = broker.image.topics["a"].id
            for offset in range(3):
                request = produce("", batch(b"x"), topic_id=topic_id)
                answer = await client.call(request, 13)
                assert answer.responses[0].topic_id == topic_id
                assert produced(answer).base_offset == offset
            unknown = produce("", batch(b"x"), topic_id=UUID(int=9))
            assert produced(await client.call(unknown, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run(scenario())


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_below_3_are_advertised_and_close_the_connection(version):
    """KAFKA-18659: clients look for produce 0 in the list; nobody may use it."""

    async def scenario():
        async with connected() as (_, client):
            listed = await client.call(ApiVersionsRequest(), 0)
            assert next(api.min_version for api in listed.api_keys if api.api_key == 0) == 0
            body = struct.pack(">hihi", 1, 1000, 0, 0)
            header = struct.pack(">hhih", 0, version, 7, -1)
            client.writer.write(struct.pack(">i", len(header) + len(body)) + header + body)
            assert await client.is_closed()

    run(scenario())


def test_acks_0_gets_no_answer_and_keeps_the_order_of_the_others():
    """The next answer on the connection is the next request's."""

    async def scenario():
        async with connected() as (_, client):
            for value in (b"1", b"2", b"3"):
                client.send(produce("a", batch(value), acks=0), 9)
            answer = await client.call(produce("a", batch(b"4")), 9)
            assert produced(answer).base_offset == 3

    run(scenario())


def test_an_error_without_acknowledgement_closes_the_connection():
    """The only way to tell the producer to refresh its metadata."""

    async def scenario():
        async with connected() as (_, client):
            client.send(produce("nowhere", batch(b"1"), acks=0), 9)
            assert await client.is_closed()

    run(scenario())


def test_many_requests_at_once_are_answered_in_their_order():
    """Pipelining, with acknowledgements of both kinds mixed."""

    async def scenario():
        async with connected() as (_, client):
            sent = [
                client.send(produce("a", batch(b"x"), acks=acks), 9) for acks in (-1, 1, 1, -1) * 25
            ]
            answered = []
            for _ in sent:
                frame = await client.receive_frame()
                answered.append(struct.unpack_from(">i", frame)[0])
            assert answered == sent

    run(scenario())


def of_producer(sequence):
    return batch(b"x", producer_id=5, producer_epoch=0, base_sequence=sequence)


async def pipelined(client, requests):
    """Requests in one write, which the broker receives at once; the answers in their order."""
    messages = []
    client.writer, writer = Written(messages), client.writer
    sent = [client.send(request, 9) for request in requests]
    client.writer = writer
    writer.write(b"".join(messages))
    answers = []
    for correlation_id in sent:
        frame = await client.receive_frame()
        assert struct.unpack_from(">i", frame)[0] == correlation_id
        answers.append(produced(decode_response(ApiKey.PRODUCE, 9, frame)[1]))
    return answers


class Written:
    """Keeps what is written."""

    def __init__(self, messages):
        self.write = messages.append


def counting_runs(monkeypatch):
    """How many batches each write of several brought, from now on."""
    counts = []
    real = MemoryFile.append_many

    def append_many(self, buffers):
        counts.append(len(buffers))
        real(self, buffers)

    monkeypatch.setattr(MemoryFile, "append_many", append_many)
    return counts


@pytest.mark.parametrize("policy", ["os", "group"])
@pytest.mark.parametrize("acks", [1, -1])
def test_requests_that_come_together_are_appended_with_one_write(monkeypatch, acks, policy):
    """Each is told its own offset, with every acknowledgement and flush policy (P8)."""

    async def scenario():
        async with connected({"log.flush.policy": policy}) as (_, client):
            await client.call(produce("a", batch(b"0"), acks=acks), 9)
            counts = counting_runs(monkeypatch)
            values = [[b"1"], [b"2", b"3"], [b"4"], [b"5"], [b"6", b"7"], [b"8"]]
            requests = [produce("a", batch(*some), acks=acks) for some in values]
            answers = await pipelined(client, requests)
            assert [a.error_code for a in answers] == [0] * 6
            assert [a.base_offset for a in answers] == [1, 2, 4, 5, 6, 8]
            assert [a.log_append_time_ms for a in answers] == [-1] * 6
            assert counts == [3, 3]
            answer = fetched(await client.call(fetch("a", 0), 12))
            assert values_in(bytes(answer.records)) == [b"%d" % n for n in range(9)]

    run(scenario())


def test_a_producers_requests_that_come_together_stay_idempotent(monkeypatch):
    """New ones are appended with one write; the same again keep their offsets; a gap is refused."""

    async def scenario():
        async with connected() as (broker, client):
            await client.call(produce("a", of_producer(0)), 9)
            counts = counting_runs(monkeypatch)
            requests = [produce("a", of_producer(sequence)) for sequence in (1, 2, 3)]
            for _ in range(2):
                answers = await pipelined(client, requests)
                assert [(a.error_code, a.base_offset) for a in answers] == [(0, 1), (0, 2), (0, 3)]
            assert counts == [3]
            gap = [produce("a", of_producer(sequence)) for sequence in (7, 8)]
            codes = [answer.error_code for answer in await pipelined(client, gap)]
            assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
            assert broker.partitions.get("a", 0).log_end_offset == 4

    run(scenario())


def test_a_bad_request_among_those_that_come_together_fails_alone():
    """Those before it and after it are appended."""

    async def scenario():
        async with connected() as (_, client):
            await client.call(produce("a", batch(b"0")), 9)
            good = [produce("a", batch(b"x")) for _ in range(4)]
            bad = [produce("a", bytes(BROKEN)), produce("nowhere", batch(b"x"))]
            answers = await pipelined(client, good[:2] + bad[:1] + good[2:] + bad[1:])
            assert [(a.error_code, a.base_offset) for a in answers] == [
                (ErrorCode.NONE, 1),
                (ErrorCode.NONE, 2),
                (ErrorCode.CORRUPT_MESSAGE, -1),
                (ErrorCode.NONE, 3),
                (ErrorCode.NONE, 4),
                (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            ]

    run(scenario())


def test_requests_that_come_together_are_all_refused_when_the_disk_is_full():
    """None of their batches stays; with space they are taken again."""

    async def scenario():
        filesystem = MemoryFileSystem()
        async with connected(filesystem=filesystem) as (broker, client):
            await client.call(produce("a", batch(b"0")), 9)
            requests = [produce("a", batch(b"x" * 100)) for _ in range(3)]
            filesystem.capacity_bytes = 1 << 40
            filesystem.capacity_bytes -= filesystem.room() - 200
            answers = await pipelined(client, requests)
            codes = [answer.error_code for answer in answers]
            assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
            assert broker.partitions.get("a", 0).log_end_offset == 1
            filesystem.capacity_bytes = None
            answers = await pipelined(client, requests)
            assert [(a.error_code, a.base_offset) for a in answers] == [(0, 1), (0, 2), (0, 3)]

    run(scenario())


def test_requests_that_come_together_time_out_each_by_itself():
    """REQUEST_TIMED_OUT to all; the batches stay appended."""

    async def scenario():
        async with connected() as (broker, client):
            requests = [produce("a", batch(b"x"), timeout_ms=30) for _ in range(3)]
            await client.call(requests[0], 9)
            broker.parts.replication.flusher.mark_dirty = lambda partition: None
            codes = [answer.error_code for answer in await pipelined(client, requests)]
            assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 3
            assert broker.partitions.get("a", 0).log_end_offset == 4

    run(scenario())


BROKEN = bytearray(batch(b"x"))
BROKEN[-1] ^= 1
OLD = bytearray(batch(b"x"))
OLD[16] = 1
UNKNOWN_CODEC = bytearray(batch(b"x"))
UNKNOWN_CODEC[22] |= 7


@pytest.mark.parametrize(
    ("request_message", "code"),
    [
        (produce("nowhere", batch(b"x")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce("a", batch(b"x"), partition=7), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce("a", batch(b"x"), partition=-1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce("a", batch(b"x"), acks=2), ErrorCode.INVALID_REQUIRED_ACKS),
        (produce("a", bytes(BROKEN)), ErrorCode.CORRUPT_MESSAGE),
        (produce("a", bytes(OLD)), ErrorCode.INVALID_RECORD),
        (produce("a", bytes(UNKNOWN_CODEC)), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (produce("a", batch(b"x" * 1_100_000)), ErrorCode.MESSAGE_TOO_LARGE),
        (produce("a", batch(b"x") + batch(b"y")), ErrorCode.INVALID_RECORD),
        (produce("a", batch(b"x")[:-5]), ErrorCode.INVALID_RECORD),
        (produce("a", b""), ErrorCode.INVALID_RECORD),
        (produce("a", None), ErrorCode.INVALID_RECORD),
    ],
)
def test_bad_batches_are_refused_with_kafkas_codes(request_message, code):
    """Before and after the shortcut is known; a good batch goes through afterwards."""

    async def scenario():
        async with connected() as (_, client):
            refused = produced(await client.call(request_message, 9))
            assert ErrorCode(refused.error_code) == code
            assert refused.base_offset == -1
            assert produced(await client.call(produce("a", batch(b"1")), 9)).base_offset == 0
            again = produced(await client.call(request_message, 9))
            assert again.error_code == refused.error_code
            assert produced(await client.call(produce("a", batch(b"2")), 9)).base_offset == 1

    run(scenario())


@pytest.mark.parametrize("version", [9, 13])
def test_a_batch_too_large_is_explained_to_the_operator(caplog, version):
    """Who sent it, where to, its size, and where the limit is set; once, also by the shortcut."""

    async def scenario():
        settings = {"message.max.bytes": "5000"}
        async with connected(settings) as (broker, client):
            topic_id = broker.image.topics["a"].id if version >= 13 else None
            name = "" if version >= 13 else "a"
            large = produce(name, batch(b"x" * 6_000), topic_id=topic_id)
            small = produce(name, batch(b"x"), topic_id=topic_id)
            for request in (small, large, small, large, large):
                await client.call(request, version)

    run(scenario())
    (line,) = [text for text in caplog.messages if "refused a batch" in text]
    size = len(batch(b"x" * 6_000))
    assert f"refused a batch of {size} bytes for a-0 from the producer 'test' at 127.0.0.1:" in line
    assert "MESSAGE_TOO_LARGE" in line
    assert "max.message.bytes is 5000 (message.max.bytes, set when this broker was started)" in line
    assert "`ottla config set topic a max.message.bytes=...`" in line


def test_refusals_that_pass_by_themselves_are_not_logged(caplog):
    """A client with old metadata asks again by itself."""

    async def scenario():
        async with connected() as (_, client):
            await client.call(produce("nowhere", batch(b"x")), 9)

    run(scenario())
    assert not [text for text in caplog.messages if "refused a batch" in text]


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=b"\0user\0password"), 2),
    ],
)
def test_sasl_on_a_plaintext_listener_is_refused_as_kafka_does(caplog, message, version):
    """ILLEGAL_SASL_STATE, the connection stays; one line in the log, without the password."""

    async def scenario():
        async with connected() as (_, client):
            for _ in range(3):
                answer = await client.call(message, version)
                assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE

    run(scenario())
    (line,) = [text for text in caplog.messages if "SASL" in text]
    assert "security.protocol=PLAINTEXT" in line
    assert "'test'" in line
    assert "password" not in line


def test_several_partitions_of_one_request_succeed_and_fail_apart():
    """One bad batch spoils nothing else."""

    async def scenario():
        async with connected(topics=("a", "b")) as (_, client):
            request = produce("a", batch(b"1"))
            request.topic_data += produce("b", bytes(BROKEN)).topic_data
            answer = await client.call(request, 9)
            codes = [topic.partition_responses[0].error_code for topic in answer.responses]
            assert codes == [ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE]

    run(scenario())


def test_a_repeated_batch_of_a_producer_keeps_its_first_offset():
    """Idempotence (P9): sequence 0 again is the same append; a gap is refused."""

    async def scenario():
        async with connected() as (_, client):
            for _ in range(3):
                answer = produced(await client.call(produce("a", of_producer(0)), 9))
                assert (answer.error_code, answer.base_offset) == (0, 0)
            assert produced(await client.call(produce("a", of_producer(1)), 9)).base_offset == 1
            gap = produced(await client.call(produce("a", of_producer(9)), 9))
            assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    run(scenario())


@pytest.mark.parametrize("acks", [1, -1])
def test_min_isr_never_asks_for_more_replicas_than_there_are(acks):
    """A topic of one replica is written to as in Kafka; see also integration/replication (P25)."""

    async def scenario():
        async with connected({"min.insync.replicas": "2"}) as (_, client):
            for _ in range(2):
                answer = produced(await client.call(produce("a", batch(b"x"), acks=acks), 9))
                assert answer.error_code == ErrorCode.NONE

    run(scenario())


def test_log_append_time_is_told():
    """message.timestamp.type=LogAppendTime."""

    async def scenario():
        settings = {"log.message.timestamp.type": "LogAppendTime"}
        async with connected(settings) as (broker, client):
            for _ in range(2):
                before_ms = broker.runtime.clock.now_ms()
                answer = produced(await client.call(produce("a", batch(b"x", timestamp=1)), 9))
                assert before_ms <= answer.log_append_time_ms <= broker.runtime.clock.now_ms()

    run(scenario())


def test_acks_all_times_out_when_the_disk_does_not_come_back():
    """REQUEST_TIMED_OUT; the batch stays appended, as in Kafka."""

    async def scenario():
        async with connected() as (broker, client):
            broker.parts.replication.flusher.mark_dirty = lambda partition: None
            for _ in range(2):
                request = produce("a", batch(b"x"), timeout_ms=30)
                answer = produced(await client.call(request, 9))
                assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
            assert broker.partitions.get("a", 0).log_end_offset == 2
            assert broker.partitions.get("a", 0).high_watermark == 0

    run(scenario())


def test_a_deleted_topic_is_unknown_at_once_also_to_the_shortcut():
    """What a connection has learnt does not outlive the partition."""

    async def scenario():
        async with connected() as (broker, client):
            for _ in range(2):
                await client.call(produce("a", batch(b"x")), 9)
            await broker.parts.metadata.topics.delete([broker.image.topics["a"]])
            answer = produced(await client.call(produce("a", batch(b"x")), 9))
            assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await broker.parts.metadata.topics.auto_create("a")
            for offset in range(2):
                answer = produced(await client.call(produce("a", batch(b"x")), 9))
                assert (answer.error_code, answer.base_offset) == (0, offset)

    run(scenario())


def test_a_transactional_batch_without_a_transactional_id_is_refused():
    """Else it would stay undecided for ever, and stop every reader of committed records."""

    async def scenario():
        async with connected() as (broker, client):
            sent = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
            for _ in range(2):
                answer = produced(await client.call(produce("a", sent), 9))
                assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert broker.partitions.get("a", 0).log_end_offset == 0

    run(scenario())


def test_two_connections_may_send_to_one_partition():
    """Offsets are given in the order of arrival; each is told its own."""

    async def scenario():
        async with connected() as (broker, first):
            second = await Client.connect(broker.port)
            offsets = []
            for client in (first, second) * 3:
                answer = produced(await client.call(produce("a", batch(b"x"), acks=1), 9))
                offsets.append(answer.base_offset)
            assert offsets == [0, 1, 2, 3, 4, 5]
            second.close()

    run(scenario())
