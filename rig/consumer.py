"""Reading with librdkafka's consumer: it tells of passing trouble among the records."""

import threading
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, Message, ShareConsumer

PATIENCE_S = 120.0
# A connection that breaks, a coordinator that is being looked for, a leader that has moved: the
# client goes on by itself, and its program is only told.
_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)


def records_among(messages: Iterable[Message]) -> list[Message]:
    """What came without an error. Raises AssertionError for an error that does not pass."""
    found = []
    for message in messages:
        error = message.error()
        if error is None:
            found.append(message)
        else:
            assert error.code() in _PASSING, error
    return found


def read(consumer: Consumer, count: int, timeout_s: float = PATIENCE_S) -> list[Message]:
    """The next so many records; fails rather than wait for ever."""
    found: list[Message] = []
    deadline_s = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < deadline_s, f"only {len(found)} of {count} records came"
        found += records_among(consumer.consume(count - len(found), 0.5))
    return found


def close(consumer: Consumer | ShareConsumer, timeout_s: float = PATIENCE_S) -> None:
    """Leave the group; fails rather than wait for ever in the library, where no signal is heard."""
    thread = threading.Thread(target=consumer.close, daemon=True)
    thread.start()
    thread.join(timeout_s)
    assert not thread.is_alive(), f"librdkafka's close has not come back for {timeout_s:.0f} s"
