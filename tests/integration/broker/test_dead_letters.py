"""Dead letters that are not as they were meant to be: what the broker does and tells (KIP-1191)."""

import asyncio

from ottla.metadata.topic_plan import RequestedTopic
from ottla.record.reader import batches, records
from ottla.wire.messages.share_records import ShareFetchRequest
from tests.integration.broker.broker_client import fetch, fetched, until
from tests.integration.broker.share_member import FOR_EVER_MS, REJECT, joined, values, write

NAME = "errors_deadletterqueue_topic_name"
COPY = "errors_deadletterqueue_copy_record_enable"


def run(coroutine):
    return asyncio.run(coroutine)


async def reject_all(member, count):
    """One request for each, as a member that looks at its records one by one."""
    got = []
    while len(got) < count:
        got += await member.fetch(min_bytes=1, max_wait_ms=FOR_EVER_MS)
    for offset in range(count):
        asked: ShareFetchRequest = member.request(
            min_bytes=1, max_wait_ms=1, said=[(offset, offset, REJECT)]
        )
        asked.max_records = 0
        assert values(await member.client.call(asked, 2)) == []


def errors(caplog):
    """What is told of dead letters."""
    told = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    return [each for each in told if "dead letter" in each]


def test_a_topic_that_is_missing_is_told_with_what_helps_and_not_for_each_record(caplog):
    """And the group goes on: its records are done with."""

    async def scenario():
        async with joined(**{NAME: "dlq.nowhere"}) as (member, other):
            await write(other, *[b"%d" % number for number in range(20)])
            await reject_all(member, 20)
            await until(lambda: errors(caplog))
            await write(other, b"next")
            assert await member.fetch(min_bytes=1, max_wait_ms=FOR_EVER_MS) == [b"next"]
            (core,) = (each.core for each in member.broker.parts.share.sharing._served.values())
            await until(lambda: core.start_offset == 20)

    run(scenario())
    told = errors(caplog)
    assert len(told) <= 3
    assert "share group workers: " in told[0]
    assert (
        "get no dead letter: dead-letter topic dlq.nowhere does not exist: ottla topic create"
        in told[0]
    )


def test_a_topic_that_is_not_open_for_letters_gets_none(caplog):
    """Whoever may write to a topic may not have the broker write to any other."""

    async def scenario():
        async with joined(**{NAME: "dlq.closed"}) as (member, other):
            await member.broker.parts.metadata.topics.create([RequestedTopic("dlq.closed", 1)])
            await write(other, b"one")
            await reject_all(member, 1)
            await until(lambda: errors(caplog))
            answer = fetched(await other.call(fetch("dlq.closed", 0), 12))
            assert (answer.error_code, answer.high_watermark) == (0, 0)

    run(scenario())
    assert "errors.deadletterqueue.group.enable=true" in errors(caplog)[0]


def test_a_record_that_does_not_fit_leaves_a_letter_without_it(caplog):
    """Its headers still tell where it stood, and the log what is to be raised."""

    async def scenario():
        async with joined(**{NAME: "dlq.small", COPY: "true"}) as (member, other):
            configs = {"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "1000"}
            await member.broker.parts.metadata.topics.create(
                [RequestedTopic("dlq.small", 1, configs=configs)]
            )
            await write(other, b"small", b"x" * 5000)
            await reject_all(member, 2)
            found = []
            while len(found) < 2:
                answer = fetched(
                    await other.call(fetch("dlq.small", len(found), max_wait_ms=FOR_EVER_MS), 12)
                )
                found += [
                    record
                    for position, header in batches(bytes(answer.records))
                    for record in records(bytes(answer.records), position, header)
                ]
            assert [each.value for each in found] == [b"small", None]
            assert [dict(each.headers)["__dlq.errors.offset"] for each in found] == [b"0", b"1"]

    run(scenario())
    told = errors(caplog)[0]
    assert "1 record(s) get dead letters without key and value" in told
    assert "raise its max.message.bytes" in told
