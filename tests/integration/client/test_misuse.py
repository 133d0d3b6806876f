"""Calls that cannot work: they fail at once, and say what to do instead."""

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterator

import pytest

from ottla.base.errors import ErrorCode
from ottla.client import (
    Admin,
    CallbackFailed,
    ClientError,
    Consumer,
    Producer,
    TopicPartition,
    UnknownTopic,
    sync,
)
from ottla.testing import Broker

FIRST = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with topic `t` of one partition."""
    with Broker() as broker:
        broker.create_topic("t")
        yield broker.bootstrap


@pytest.mark.parametrize(
    ("partition", "words"),
    [(TopicPartition("tt", 0), "no topic 'tt'; did you mean t"), (TopicPartition("t", 7), "not 7")],
)
def test_a_commit_for_what_does_not_exist_is_refused_by_name(
    bootstrap: str, caplog: pytest.LogCaptureFixture, partition: TopicPartition, words: str
) -> None:
    """With a warning at once, and not only after default_api_timeout_ms."""
    with (
        sync.Consumer(bootstrap, group_id="g", default_api_timeout_ms=3_600_000) as consumer,
        pytest.raises(UnknownTopic, match=words),
    ):
        consumer.commit({partition: 1})
    (warning,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert str(partition) in warning.getMessage()


def test_a_consumer_that_reads_nothing_is_not_polled(bootstrap: str) -> None:
    """Kafka's client raises an IllegalStateException."""
    with sync.Consumer(bootstrap, group_id="g") as consumer:
        with pytest.raises(ClientError, match="subscribe to topics or assign partitions"):
            consumer.poll(0)
        with pytest.raises(ClientError, match="subscribe to topics or assign partitions"):
            next(consumer)
        consumer.assign([FIRST])
        assert not consumer.poll(0)
        consumer.assign([])
        with pytest.raises(ClientError, match="subscribe to topics or assign partitions"):
            consumer.poll(0)


def test_an_empty_group_is_refused(bootstrap: str) -> None:
    """It would neither be a group nor none."""
    for options in ({"group": ""}, {"group_id": ""}):
        with pytest.raises(
            ClientError, match="group_id is empty; give the group a name"
        ) as refused:
            sync.Consumer(bootstrap, "t", **options)  # type: ignore[arg-type]
        assert refused.value.code is ErrorCode.INVALID_GROUP_ID


async def _poll(consumer: Consumer) -> None:
    await consumer.poll(0)


async def _send(producer: Producer) -> None:
    await (await producer.send("t", b"v"))


async def _list(admin: Admin) -> None:
    await admin.topics.list()


async def _close(client: Consumer | Producer | Admin) -> None:
    await client.close()


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (lambda at: Consumer(at, "t"), _poll),
        (lambda at: Consumer(at, "t", group_id="loops"), _poll),
        (Producer, _send),
        (Admin, _list),
    ],
)
@pytest.mark.parametrize("end", [None, _close])
def test_a_client_belongs_to_one_loop(
    bootstrap: str,
    make: Callable[[str], object],
    use: Callable[..., object],
    end: Callable[..., object] | None,
) -> None:
    """In a second asyncio.run the error names the way out."""
    client = make(bootstrap)
    asyncio.run(use(client))  # type: ignore[arg-type]
    with pytest.raises(ClientError, match=r"another event loop.*ottla.client.sync"):
        asyncio.run((end or use)(client))  # type: ignore[arg-type]


def _broken(_given: object) -> None:
    raise KeyError("mine")


async def _broken_later(_given: object) -> None:
    raise KeyError("mine")


@pytest.mark.parametrize("listener", [_broken, _broken_later])
def test_what_a_listener_raises_begins_with_its_own_code(
    bootstrap: str, listener: Callable[[object], None]
) -> None:
    """`poll` raises an error that names the listener; its cause has the listener's frames alone."""
    with (
        sync.Consumer(bootstrap, "t", group_id="listens", on_assigned=listener) as consumer,
        pytest.raises(CallbackFailed, match=r"on_assigned raised KeyError\('mine'\)") as failed,
    ):
        consumer.poll(60)
    cause = failed.value.__cause__
    assert isinstance(cause, KeyError)
    (frame,) = traceback.extract_tb(cause.__traceback__)
    assert frame.name == listener.__name__


def test_what_a_delivery_callback_raises_is_logged_by_its_name(
    bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The producer goes on, and other callbacks are called."""
    seen: list[object] = []
    with sync.Producer(bootstrap, on_delivery=_broken) as producer:
        delivery = producer.send("t", b"v")
        delivery.add_callback(_broken)
        delivery.add_callback(seen.append)
        delivery.result(60)
        producer.send_and_wait("t", b"v")
    assert seen == [delivery]
    errors = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert [each.getMessage() for each in errors] == [
        "a callback of a delivery raised KeyError('mine')",
        "on_delivery raised KeyError('mine')",
        "on_delivery raised KeyError('mine')",
    ]
    for each in errors:
        assert each.exc_info is not None
        (frame,) = traceback.extract_tb(each.exc_info[2])
        assert frame.name == "_broken"
