"""Groups against real brokers: each partition read by exactly one member (P11)."""

import asyncio
import re
import time
from collections.abc import Callable

import confluent_kafka
import pytest

from ottla.client import (
    Admin,
    CommitFailed,
    Consumer,
    ConsumerOptions,
    Producer,
    TopicPartition,
    sync,
)


def member(bootstrap: str, group: str, **options: object) -> Consumer:
    """A member that notices rebalances quickly."""
    chosen = {"heartbeat_interval_ms": 100, "session_timeout_ms": 30_000, **options}
    return Consumer(bootstrap, group_id=group, **chosen)


async def poll_until(done: Callable[[], bool], *members: Consumer) -> list[bytes | None]:
    """Let members poll until `done`, and return all values they read meanwhile."""
    found: list[bytes | None] = []

    async def keep_polling(one: Consumer) -> None:
        while not done():
            for batch in (await one.poll(0.1)).by_partition:
                found.extend(record.value for record in batch.records)

    async with asyncio.timeout(120):
        await asyncio.gather(*map(keep_polling, members))
    return found


def fill(bootstrap: str, topic: str, count: int, start: int = 0) -> None:
    with sync.Producer(bootstrap) as producer:
        for number in range(start, start + count):
            producer.send(topic, b"%d" % number, key=b"%d" % number)


def numbers(start: int, stop: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(start, stop))


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_share_all_partitions_and_read_each_record_once(
    bootstrap, make_topic, group, assignor
) -> None:
    """A second member takes over half; when the first leaves, the second has all (P11)."""
    topic = make_topic(partitions=4)
    fill(bootstrap, topic, 100)
    every = {TopicPartition(topic, number) for number in range(4)}

    async def run() -> None:
        first = member(bootstrap, group, partition_assignment_strategy=(assignor,))
        first.subscribe(topic)
        seen: list[bytes | None] = []
        while len(seen) < 100:
            for batch in (await first.poll(5)).by_partition:
                seen += [record.value for record in batch.records]
        assert sorted(map(bytes, filter(None, seen))) == numbers(0, 100)
        assert first.assignment() == every
        async with member(bootstrap, group, partition_assignment_strategy=(assignor,)) as second:
            second.subscribe([topic])
            again = await poll_until(
                lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second
            )
            assert first.assignment() | second.assignment() == every
            assert again == []
            await first.close()
            await poll_until(lambda: second.assignment() == every, second)
            fill(bootstrap, topic, 50, start=100)
            rest: list[bytes | None] = []
            while len(rest) < 50:
                rest += [r.value for r in await second.poll()]
            assert sorted(map(bytes, filter(None, rest))) == numbers(100, 150)

    asyncio.run(run())


def test_cooperative_members_keep_what_does_not_move(bootstrap, make_topic, group) -> None:
    """Only the partitions that change hands are revoked (KIP-429)."""
    topic = make_topic(partitions=4)
    revoked: list[set[TopicPartition]] = []

    async def run() -> None:
        options = ConsumerOptions(
            group_id=group,
            heartbeat_interval_ms=100,
            partition_assignment_strategy=("cooperative-sticky",),
        )
        async with (
            Consumer(bootstrap, **options, on_revoked=revoked.append) as first,
            member(
                bootstrap, group, partition_assignment_strategy=("cooperative-sticky",)
            ) as second,
        ):
            first.subscribe(topic)
            await poll_until(lambda: len(first.assignment()) == 4, first)
            kept_before = first.assignment()
            second.subscribe(topic)
            await poll_until(lambda: len(second.assignment()) == 2, first, second)
            assert revoked == [kept_before - first.assignment()]
            assert len(revoked[0]) == 2

    asyncio.run(run())


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_may_be_mixed_with_librdkafka(bootstrap, make_topic, group, assignor) -> None:
    """Whoever leads, both understand each other's subscriptions and assignments."""
    topic = make_topic(partitions=4)
    every = {TopicPartition(topic, number) for number in range(4)}
    other = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "partition.assignment.strategy": assignor,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 30_000,
        }
    )
    theirs: list[bytes] = []

    def other_has() -> set[TopicPartition]:
        return {TopicPartition(p.topic, p.partition) for p in other.assignment()}

    def run(first: sync.Consumer, done: Callable[[], bool]) -> list[bytes | None]:
        found: list[bytes | None] = []
        limit_s = time.monotonic() + 120
        while not done():
            assert time.monotonic() < limit_s, (first.assignment(), other_has())
            found += [r.value for r in first.poll(0.05)]
            message = other.poll(0.05)
            if message is not None and message.error() is None:
                theirs.append(message.value())
        return found

    options = ConsumerOptions(
        group_id=group, partition_assignment_strategy=(assignor,), heartbeat_interval_ms=100
    )
    with sync.Consumer(bootstrap, **options) as mine:
        mine.subscribe(topic)
        other.subscribe([topic])
        run(mine, lambda: len(other_has()) == 2 and len(mine.assignment()) == 2)
        assert mine.assignment() | other_has() == every
        fill(bootstrap, topic, 60)
        ours: list[bytes | None] = []
        while len(ours) + len(theirs) < 60:
            ours += run(mine, iter([False, True]).__next__)
        assert sorted([*map(bytes, filter(None, ours)), *theirs]) == numbers(0, 60)
        other.close()
        run_alone = time.monotonic() + 120
        while mine.assignment() != every:
            assert time.monotonic() < run_alone
            mine.poll(0.1)


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    bootstrap, make_topic, group
) -> None:
    """KIP-345: a restart under the same instance id within the session changes nothing."""
    topic = make_topic(partitions=2)

    async def run() -> None:
        async with member(bootstrap, group, group_instance_id="one") as one:
            two = member(bootstrap, group, group_instance_id="two")
            one.subscribe(topic)
            two.subscribe(topic)
            await poll_until(lambda: len(one.assignment()) == len(two.assignment()) == 1, one, two)
            had, kept = two.assignment(), one.assignment()
            async with Admin(bootstrap) as admin:
                await two.close()
                (before,) = await admin.groups.describe_all([group])
                assert len(before.members) == 2
                async with member(bootstrap, group, group_instance_id="two") as again:
                    again.subscribe(topic)
                    await poll_until(lambda: again.assignment() == had, one, again)
                    assert one.assignment() == kept

    asyncio.run(run())


def test_reading_goes_on_where_the_group_committed(bootstrap, make_topic, group) -> None:
    """A commit is exact: the next member starts at the record after it, in mid-batch too (P12)."""
    topic = make_topic()
    fill(bootstrap, topic, 10)

    async def run() -> None:
        async with member(bootstrap, group, enable_auto_commit=False) as consumer:
            consumer.subscribe(topic)
            async for record in consumer:
                if record.offset == 3:
                    await consumer.commit()
                if record.offset == 5:
                    break
        async with member(bootstrap, group, enable_auto_commit=False) as consumer:
            consumer.subscribe(topic)
            partition = TopicPartition(topic, 0)
            record = await anext(consumer)
            assert record.offset == 4
            assert await consumer.committed(partition) == 4
            await consumer.commit({partition: 7})
            assert await consumer.committed(partition) == 7

    asyncio.run(run())


def test_automatic_commits_stop_short_of_the_record_in_hand(bootstrap, make_topic, group) -> None:
    """A record whose processing failed is read again by the next member (P12)."""
    topic = make_topic()
    fill(bootstrap, topic, 10)

    class BrokenError(Exception):
        pass

    async def fail_at_record_6() -> None:
        async with member(bootstrap, group, auto_commit_interval_ms=1) as consumer:
            consumer.subscribe(topic)
            async for record in consumer:
                await asyncio.sleep(0.01)
                if record.offset == 6:
                    raise BrokenError

    async def run() -> int:
        with pytest.raises(BrokenError):
            await fail_at_record_6()
        async with member(bootstrap, group) as consumer:
            consumer.subscribe(topic)
            return (await anext(consumer)).offset

    assert 0 < asyncio.run(run()) <= 6


def test_a_member_that_lost_its_place_cannot_commit(bootstrap, make_topic, group) -> None:
    """Too long between polls: the partitions are with another, and the error says so (KIP-62)."""
    topic = make_topic()
    fill(bootstrap, topic, 10)

    async def run() -> None:
        options = {"session_timeout_ms": 6_000, "max_poll_interval_ms": 500}
        slow = member(bootstrap, group, enable_auto_commit=False, **options)
        async with slow, member(bootstrap, group, enable_auto_commit=False) as quick:
            slow.subscribe(topic)
            (record, *_) = await slow.poll(120)
            quick.subscribe(topic)
            await poll_until(lambda: len(quick.assignment()) == 1, quick)
            with pytest.raises(CommitFailed, match="has moved on"):
                await slow.commit({TopicPartition(topic, 0): record.offset + 1})

    asyncio.run(run())


def test_a_pattern_takes_up_topics_made_later(bootstrap, make_topic, group) -> None:
    """Subscribing to a pattern reads topics that appear, after the next metadata."""
    first = make_topic()
    pattern = re.compile(re.escape(first) + ".*")

    async def run() -> None:
        options = {"metadata_max_age_ms": 300}
        async with member(bootstrap, group, **options) as consumer, Admin(bootstrap) as admin:
            consumer.subscribe(pattern)
            await poll_until(lambda: len(consumer.assignment()) == 1, consumer)
            await admin.topics.create(first + "-too", partitions=2)
            await poll_until(lambda: len(consumer.assignment()) == 3, consumer)
            await admin.topics.create_partitions(first, 2)
            await poll_until(lambda: len(consumer.assignment()) == 4, consumer)

    asyncio.run(run())


def test_the_first_record_of_a_new_group_comes_at_once(ottla_node, group) -> None:
    """Joining, finding offsets and fetching take no fixed delays (with no rebalance delay set)."""
    bootstrap = ottla_node.bootstrap

    async def run(number: int) -> float:
        name = f"{group}-{number}"
        async with Producer(bootstrap) as producer:
            await producer.send_and_wait(name, b"v")
        began_s = time.monotonic()
        async with member(bootstrap, name) as consumer:
            consumer.subscribe(name)
            assert (await anext(consumer)).value == b"v"
            return time.monotonic() - began_s

    # A delay that is built in would show each time; that the machine stands still does not.
    assert any(asyncio.run(run(number)) < 1 for number in range(10))
