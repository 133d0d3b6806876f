"""librdkafka's consumer groups, classic protocol: members come, go, and take over (P11)."""

import time
from collections.abc import Callable, Sequence

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from rig.consumer import read, records_among

MakeTopic = Callable[..., str]


def member(bootstrap: str, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 300,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def fill(bootstrap: str, topic: str, partitions: int, each: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for index in range(each):
        for partition in range(partitions):
            producer.produce(topic, f"{partition}:{index}".encode(), partition=partition)
    assert producer.flush(120) == 0


def poll_until(
    members: Sequence[Consumer], done: Callable[[], bool], timeout_s: float = 120
) -> list[bytes]:
    """Poll all members in turn until `done`, and give the values that came meanwhile."""
    values: list[bytes] = []
    deadline_s = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline_s, [m.assignment() for m in members]
        for consumer in members:
            values += [message.value() for message in records_among(consumer.consume(1, 0.05))]
    return values


def shares(members: Sequence[Consumer]) -> list[int]:
    return sorted(len(m.assignment()) for m in members)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_partitions_are_shared_and_taken_over(
    bootstrap: str, make_topic: MakeTopic, group: str, strategy: str
) -> None:
    """A second member gets half; when it leaves, the first has all again (P11)."""
    topic = make_topic(partitions=4)
    settings = {"partition_assignment_strategy": strategy}
    first = member(bootstrap, group, **settings)
    second = member(bootstrap, group, **settings)

    first.subscribe([topic])
    poll_until([first], lambda: shares([first]) == [4])
    second.subscribe([topic])
    poll_until([first, second], lambda: shares([first, second]) == [2, 2])
    held = {tp.partition for tp in first.assignment()} | {
        tp.partition for tp in second.assignment()
    }
    second.close()
    poll_until([first], lambda: shares([first]) == [4])
    first.close()

    assert held == {0, 1, 2, 3}


def test_each_record_goes_to_one_member_of_the_group(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Within a group a topic is a queue: no record twice, none left out (P11)."""
    topic = make_topic(partitions=4)
    fill(bootstrap, topic, 4, 50)
    members = [member(bootstrap, group) for _ in range(2)]
    for consumer in members:
        consumer.subscribe([topic])
    seen: list[bytes] = poll_until(members, lambda: shares(members) == [2, 2])
    # What came before both had joined may come again: nothing was committed yet.
    begin = len(seen)
    for consumer in members:
        for partition in consumer.assignment():
            consumer.seek(TopicPartition(topic, partition.partition, 0))
    values: list[bytes] = []
    deadline_s = time.monotonic() + 120
    while len(values) < 200 and time.monotonic() < deadline_s:
        for consumer in members:
            values += [message.value() for message in records_among(consumer.consume(100, 0.2))]
    for consumer in members:
        consumer.close()

    assert begin >= 0
    assert sorted(values) == sorted(f"{p}:{i}".encode() for p in range(4) for i in range(50))


def test_two_groups_each_get_every_record(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Between groups a topic is publish-subscribe (P11)."""
    topic = make_topic()
    fill(bootstrap, topic, 1, 30)
    counts = []
    for name in (f"{group}-a", f"{group}-b"):
        consumer = member(bootstrap, name)
        consumer.subscribe([topic])
        counts.append(len({message.value() for message in read(consumer, 30)}))
        consumer.close()

    assert counts == [30, 30]


def test_group_resumes_at_its_committed_offset(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """The next member starts where the last commit stands, not where reading stopped."""
    topic = make_topic()
    fill(bootstrap, topic, 1, 10)
    first = member(bootstrap, group)
    first.subscribe([topic])
    read(first, 10)
    first.commit(offsets=[TopicPartition(topic, 0, 4, metadata="half")], asynchronous=False)
    first.close()

    second = member(bootstrap, group)
    (committed,) = second.committed([TopicPartition(topic, 0)], timeout=60)
    second.subscribe([topic])
    again = [message.value() for message in read(second, 6)]
    second.close()

    assert committed.offset == 4
    assert committed.metadata == "half"
    assert again[0] == b"0:4"


def test_static_member_returns_to_its_partitions_without_a_rebalance(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """A member with a group.instance.id that restarts gets its old share (KIP-345)."""
    topic = make_topic(partitions=2)
    revoked: list[int] = []
    other = member(bootstrap, group, group_instance_id="other")
    other.subscribe([topic], on_revoke=lambda c, parts: revoked.append(len(parts)))
    mine = member(bootstrap, group, group_instance_id="mine")
    mine.subscribe([topic])
    poll_until([mine, other], lambda: shares([mine, other]) == [1, 1])
    before = mine.assignment()[0].partition
    revoked.clear()

    mine.close()  # A static member does not leave when it closes.
    mine = member(bootstrap, group, group_instance_id="mine")
    mine.subscribe([topic])
    poll_until([mine, other], lambda: len(mine.assignment()) == 1)
    after = mine.assignment()[0].partition
    told = list(revoked)
    mine.close()
    other.close()

    assert after == before
    assert told == []


def test_silent_member_is_put_out_after_its_session_timeout(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """A member that stops polling past max.poll.interval.ms loses its partitions to the others."""
    topic = make_topic(partitions=2)
    settings = {"session_timeout_ms": 6000, "max_poll_interval_ms": 6000}
    silent = member(bootstrap, group, **settings)
    lively = member(bootstrap, group, **settings)
    silent.subscribe([topic])
    lively.subscribe([topic])
    poll_until([silent, lively], lambda: shares([silent, lively]) == [1, 1])

    poll_until([lively], lambda: shares([lively]) == [2])
    silent.close()
    lively.close()
