"""Mistakes of users: an error that names the argument, what was given and what is wanted.

Never an assert, never a Python error from inside the client, never a question to a broker that
makes no sense.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import OttlaError
from ottla.client import (
    LATEST,
    Admin,
    ClientError,
    Consumer,
    Producer,
    TopicPartition,
    sync,
)
from ottla.testing import Broker

FIRST = TopicPartition("t", 0)
Call = Callable[[Any], Any]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with topic `t` of one partition."""
    with Broker() as broker:
        broker.create_topic("t")
        yield broker.bootstrap


ADMIN: list[tuple[str, Call]] = [
    ("name is 5; give str", lambda a: a.topics.create(5)),
    ("name is b't'; give str", lambda a: a.topics.create(b"t")),
    ("partitions is '3'; give int", lambda a: a.topics.create("t", partitions="3")),
    (
        "config['retention.ms'] is 1000; give str",
        lambda a: a.topics.create("t", config={"retention.ms": 1000}),
    ),
    ("config is ['a']; give Mapping[str, str]", lambda a: a.topics.create("t", config=["a"])),
    ("'t'; give NewTopic", lambda a: a.topics.create_all("t")),
    ("'t'; give NewTopic", lambda a: a.topics.create_all(["t"])),
    ("names is 5; give str | Iterable[str]", lambda a: a.topics.describe_all(5)),
    ("names[0] is None; give str", lambda a: a.topics.describe_all([None])),
    ("names is b't'; give str", lambda a: a.topics.delete(b"t")),
    ("total is 2.0; give int", lambda a: a.topics.create_partitions("t", 2.0)),
    (
        "kind is 'flights'; give Union[ConfigResourceType, Literal['topic'",
        lambda a: a.configs.describe("flights", "t"),
    ),
    ("missing 1 required positional argument: 'name'", lambda a: a.configs.describe("topic")),
    (
        "changes['retention.ms'] is 1000; give str | None",
        lambda a: a.configs.alter("topic", "t", {"retention.ms": 1000}),
    ),
    (
        "Invalid value 7x for configuration retention.ms: write a whole number, or a span",
        lambda a: a.configs.alter("topic", "t", {"retention.ms": "7x"}),
    ),
    (
        "changes is 'a=b'; give Mapping[str, str | None]",
        lambda a: a.configs.alter("topic", "t", "a=b"),
    ),
    ("name is 1; give str", lambda a: a.configs.describe("broker", 1)),
    (
        "kind is 'favourite'; give Union[ElectionKind",
        lambda a: a.partitions.elect_leaders("favourite"),
    ),
    (
        "partitions[0] is 't'; give TopicPartition | tuple[str, int]",
        lambda a: a.partitions.elect_leaders("preferred", ["t"]),
    ),
    ("wanted is [1]; give Mapping", lambda a: a.partitions.reassign([1])),
    ("[0] is 'one'; give int", lambda a: a.partitions.reassign({FIRST: ["one"]})),
    ("a key of wanted is 't'; give TopicPartition", lambda a: a.logs.offsets({"t": LATEST})),
    ("] is 'end'; give int", lambda a: a.logs.offsets({FIRST: "end"})),
    ("before is [('t', 0)]; give Mapping", lambda a: a.logs.delete_records([("t", 0)])),
    (
        "a key of before is ('t', 0); give TopicPartition",
        lambda a: a.logs.delete_records({("t", 0): 1}),
    ),
    ("partition is 't'; give TopicPartition", lambda a: a.logs.stable_offsets("t")),
    ("partition is ('t', None); give TopicPartition", lambda a: a.logs.stable_offsets(("t", None))),
    ("broker_ids is 1; give Iterable[int]", lambda a: a.logs.directories(1)),
    ("group_ids is 5; give str", lambda a: a.groups.describe_all(5)),
    ("group_id is ['g']; give str", lambda a: a.groups.offsets(["g"])),
    ("give int", lambda a: a.groups.set_offsets("g", {FIRST: "0"})),
    ("entity is 'user'; give QuotaEntity", lambda a: a.quotas.alter("user", {})),
    ("transactional_id is None; give str", lambda a: a.transactions.abort(None)),
    ("broker_id is '1'; give int", lambda a: a.cluster.remove_broker("1")),
]

CONSUMER: list[tuple[str, Call]] = [
    ("a partition is 't'; give TopicPartition(topic, number)", lambda c: c.assign("t")),
    ("whole topics are read by `subscribe`", lambda c: c.assign(["t"])),
    ("a partition is ('t', '0'); give TopicPartition", lambda c: c.assign([("t", "0")])),
    ("topics is 5; give str", lambda c: c.subscribe(5)),
    ("topics[0] is b't'; give str", lambda c: c.subscribe([b"t"])),
    ("offset is None; give an int from 0 on", lambda c: c.seek("t", 0)),
    ("number is '0'; give int", lambda c: c.seek(FIRST, "0")),
    ("offset is -1; give an int from 0 on", lambda c: c.seek(FIRST, -1)),
    ("timestamp_ms is -1; give a number from 0 on", lambda c: c.seek_to_time(-1)),
    ("t-0 is not assigned", lambda c: c.seek(FIRST, 0)),
    ("partition is ('t', 0); give TopicPartition | str", lambda c: c.position(("t", 0))),
    ("t-0 is not assigned", lambda c: c.pause([("t", 0)])),
    ("timeout is '1'; give float", lambda c: c.poll("1")),
    ("timeout is -1; give a number from 0 on", lambda c: c.poll_batches(-1)),
    ("max_records is '5'; give int", lambda c: c.poll(0, "5")),
    ("times_ms is [1]; give Mapping", lambda c: c.offsets_for_times([1])),
    ("] is '5'; give", lambda c: c.commit({FIRST: "5"})),
    ("partitions is 5; give TopicPartition", lambda c: c.end_offsets(5)),
]

PRODUCER: list[tuple[str, Call]] = [
    ("topic is 5; give a str", lambda p: p.send(5, b"v")),
    ("topic is ['t']; give str", lambda p: p.send(["t"], b"v")),
    ("topic is b't'; give a str", lambda p: p.send(b"t", b"v")),
    ("keys and values are bytes, str or None, not int", lambda p: p.send("t", 5)),
    ("keys and values are bytes, str or None, not dict", lambda p: p.send("t", b"v", {})),
    ("partition is '0'; give int | None", lambda p: p.send("t", b"v", partition="0")),
    ("has partitions 0 to 0, not 7", lambda p: p.send("t", b"v", partition=7)),
    ("timestamp_ms is '1'; give int", lambda p: p.send("t", b"v", timestamp_ms="1")),
    ("headers[0] is 'name'; give", lambda p: p.send("t", b"v", headers=["name"])),
    ("headers is 5; give", lambda p: p.send("t", b"v", headers=5)),
    (
        "headers[0][0] is b'a'; give str",
        lambda p: p.send("t", b"v", headers=[(b"a", b"b")]),
    ),
    (
        "headers['a'] is 5; give bytes | str",
        lambda p: p.send("t", b"v", headers={"a": 5}),
    ),
    ("give columns of one length", lambda p: p.send_batch("t", [b"v"], [b"k", b"k"])),
    ("topic is 5; give a str", lambda p: p.send_batch(5, [b"v"])),
    ("values is b'v'; give", lambda p: p.send_batch("t", b"v")),
    ("timestamps_ms[0] is '1'", lambda p: p.send_batch("t", [b"v"], timestamps_ms=["1"])),
    ("partition is '0'", lambda p: p.send_batch("t", [b"v"], partition="0")),
    ("values is 5; give", lambda p: p.send_batch("t", 5)),
    ("topic is 5; give str", lambda p: p.partitions_for(5)),
]

MADE: list[tuple[str, Callable[[], object]]] = [
    ("bootstrap_servers is 9092; give str", lambda: Producer(9092)),  # type: ignore[arg-type]
    ("bootstrap_servers is b'x:1'; give str", lambda: Consumer(b"x:1")),  # type: ignore[arg-type]
    ("no bootstrap address given", lambda: Admin("")),
    ("on_delivery is 5; give Callable", lambda: Producer("x:1", on_delivery=5)),  # type: ignore[arg-type]
    ("transactional_id is 5; give str", lambda: Producer("x:1", transactional_id=5)),  # type: ignore[arg-type]
    ("transactional_id that is not empty", lambda: Producer("x:1", transactional_id="")),
    ("linger_ms is '5'; give int", lambda: Producer("x:1", linger_ms="5")),  # type: ignore[arg-type]
    ("linger_ms is -1; give", lambda: Producer("x:1", linger_ms=-1)),
    ("batch_size is 0; give", lambda: Producer("x:1", batch_size=0)),
    ("buffer_memory is 1; give", lambda: Producer("x:1", buffer_memory=1)),
    (
        "max_in_flight_requests_per_connection is 0; give",
        lambda: Producer("x:1", max_in_flight_requests_per_connection=0),
    ),
    ("acks is 'some'; give Literal[0, 1, -1, 'all']", lambda: Producer("x:1", acks="some")),  # type: ignore[arg-type]
    (
        "compression_type is 'zip'; give Literal['none', 'gzip'",
        lambda: Producer("x:1", compression_type="zip"),
    ),  # type: ignore[arg-type]
    ("compression_type is 3; give", lambda: Producer("x:1", compression_type=3)),  # type: ignore[arg-type]
    ("partitioner is 'x'; give Callable", lambda: Producer("x:1", partitioner="x")),  # type: ignore[arg-type]
    ("group_id is 5; give", lambda: Consumer("x:1", group_id=5)),  # type: ignore[arg-type]
    (
        "auto_offset_reset is 'first'; give Literal['earliest'",
        lambda: Consumer("x:1", auto_offset_reset="first"),  # type: ignore[arg-type]
    ),
    (
        "no assignor 'x'",
        lambda: Consumer("x:1", group_id="g", partition_assignment_strategy=("x",)),  # type: ignore[arg-type]
    ),
    (
        "partition_assignment_strategy is 'range'; give",
        lambda: Consumer("x:1", partition_assignment_strategy="range"),  # type: ignore[arg-type]
    ),
    ("client_id is None; give", lambda: Admin("x:1", client_id=None)),  # type: ignore[arg-type]
]


async def finished(result: object) -> object:
    """What a call returned, awaited if need be."""
    return await result if isinstance(result, Awaitable) else result


def refusal(said: str, error: BaseException) -> None:
    """Require that an error is one for users, and says so."""
    assert isinstance(error, OttlaError | TypeError | ValueError), repr(error)
    assert said in str(error)


@pytest.mark.parametrize(
    ("make", "said", "call"),
    [
        *((Admin, *row) for row in ADMIN),
        *((lambda at: Consumer(at, group_id="g"), *row) for row in CONSUMER),
        *((Producer, *row) for row in PRODUCER),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_wrong_argument_is_named(
    bootstrap: str, make: Callable[[str], Any], said: str, call: Call
) -> None:
    """By the asynchronous client and by that of plain calls, in the same words."""

    async def attempt() -> None:
        async with make(bootstrap) as client:
            await finished(call(client))

    with pytest.raises(Exception) as refused:  # noqa: PT011  # Its kind is what is tested.
        asyncio.run(asyncio.wait_for(attempt(), 60))
    refusal(said, refused.value)


PLAIN: list[tuple[Callable[[str], Any], str, Call]] = [
    *((sync.Admin, *row) for row in ADMIN),
    *((lambda at: sync.Consumer(at, group_id="g"), *row) for row in CONSUMER),
    *((sync.Producer, *row) for row in PRODUCER),
]


@pytest.mark.parametrize(
    ("make", "said", "call"), PLAIN, ids=lambda each: each if isinstance(each, str) else ""
)
def test_plain_calls_name_it_too(
    bootstrap: str, make: Callable[[str], Any], said: str, call: Call
) -> None:
    """The same table, by the clients of plain calls."""
    with make(bootstrap) as client, pytest.raises(Exception) as refused:  # noqa: PT011  # As above.
        call(client)
    refusal(said, refused.value)


@pytest.mark.parametrize(("said", "make"), MADE, ids=[said for said, _ in MADE])
def test_a_client_is_not_made_with_a_wrong_option(said: str, make: Callable[[], object]) -> None:
    """It fails at once, not with the first record."""

    async def attempt() -> None:
        client: Any = make()
        if isinstance(client, Consumer):
            client.subscribe("t")

    with pytest.raises(ClientError) as refused:
        asyncio.run(attempt())
    assert said in refused.value.message


CLOSED: list[tuple[type, Call]] = [
    (Producer, lambda p: p.send("t", b"v")),
    (Producer, lambda p: p.send_batch("t", [b"v"])),
    (Producer, lambda p: p.partitions_for("t")),
    (Consumer, lambda c: c.assign([FIRST])),
    (Consumer, lambda c: c.poll(0)),
    (Consumer, lambda c: c.poll_batches(0)),
    (Consumer, lambda c: c.position(FIRST)),
    (Consumer, lambda c: c.seek(FIRST, 0)),
    (Consumer, lambda c: c.seek_to_end()),
    (Consumer, lambda c: c.pause([FIRST])),
    (Consumer, lambda c: c.resume([FIRST])),
    (Consumer, lambda c: c.end_offsets([FIRST])),
    (Consumer, lambda c: c.__anext__()),
    (Admin, lambda a: a.topics.all()),
    (Admin, lambda a: a.topics.create("u")),
    (Admin, lambda a: a.groups.describe_all("g")),
    (Admin, lambda a: a.logs.offsets({FIRST: LATEST})),
    (Admin, lambda a: a.cluster.brokers()),
    (sync.Producer, lambda p: p.send("t", b"v")),
    (sync.Producer, lambda p: p.flush()),
    (sync.Consumer, lambda c: c.poll(0)),
    (sync.Consumer, lambda c: c.pause([FIRST])),
    (sync.Consumer, lambda c: c.assignment()),
    (sync.Consumer, lambda c: next(iter(c))),
    (sync.Admin, lambda a: a.topics.all()),
]


@pytest.mark.parametrize(("kind", "call"), CLOSED)
def test_a_closed_client_says_that_it_is_closed(
    bootstrap: str, kind: Callable[[str], Any], call: Call
) -> None:
    """Also where it has read or sent before."""

    async def attempt() -> None:
        client = kind(bootstrap)
        if isinstance(client, Consumer):
            await client.assign([FIRST])
        await finished(client.close())
        await finished(call(client))

    with pytest.raises(ClientError, match="closed"):
        asyncio.run(asyncio.wait_for(attempt(), 60))


def test_headers_may_be_a_mapping(bootstrap: str) -> None:
    """As users of other clients write them; they are read in the same order."""
    with sync.Producer(bootstrap) as producer, sync.Consumer(bootstrap) as consumer:
        consumer.assign([FIRST])
        consumer.seek_to_end()
        assert consumer.position(FIRST) >= 0
        producer.send_and_wait("t", b"v", headers={"b": b"1", "a": None, "c": "é"})
        (record,) = consumer.poll(60)
    assert record.headers == [("b", b"1"), ("a", None), ("c", "é".encode())]


def test_names_stand_for_kinds_and_pairs_for_partitions(bootstrap: str) -> None:
    """`configs.describe("topic", ...)`, `elect_leaders("preferred")`, `("t", 0)`."""
    with sync.Admin(bootstrap) as admin:
        assert "retention.ms" in admin.configs.describe("topic", "t")
        assert list(admin.partitions.elect_leaders("preferred", [("t", 0)])) == [FIRST]


def test_values_of_settings_may_have_units(bootstrap: str) -> None:
    """As on the command line; brokers get the plain numbers."""
    with sync.Admin(bootstrap) as admin:
        admin.topics.create("units", config={"retention.ms": "7d"})
        assert admin.configs.describe("topic", "units")["retention.ms"].value == "604800000"
        admin.configs.alter("topic", "units", {"retention.ms": "1h", "segment.bytes": "64Mi"})
        found = admin.configs.describe("topic", "units")
        assert (found["retention.ms"].value, found["segment.bytes"].value) == (
            "3600000",
            "67108864",
        )
