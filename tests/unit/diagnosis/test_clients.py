"""What is concluded from the brokers' notes on clients."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin.clients import (
    ClientDelays,
    ClientFailure,
    ClientUsage,
    ClientUse,
    DelayReason,
    SlowRequest,
)
from ottla.diagnosis.clients import UnusedTopic, explained, failure_words, judged, merged

DAY = 86_400_000
PLACE = TopicPartition("t", 3)


def use(broker_id=1, topic="t", direction="produce", client_id="c", last_ms=10, size=1):
    return ClientUse(broker_id, topic, direction, client_id, "User:a", "lib", 5, last_ms, size)


def test_the_uses_of_one_client_on_several_brokers_are_one():
    """Producers first; the broker is that of the last use."""
    found = merged(
        [
            use(direction="fetch", client_id="reader", last_ms=99),
            use(broker_id=1, last_ms=10, size=3),
            use(broker_id=2, last_ms=20, size=4),
        ]
    )
    assert [(one.client_id, one.broker_id, one.last_ms, one.size_bytes) for one in found] == [
        ("c", 2, 20, 7),
        ("reader", 1, 99, 1),
    ]


def test_a_topic_is_unused_only_if_all_brokers_have_watched_it_for_so_long():
    """Otherwise it is not known; a use within the time, whatever is known, is a use."""
    usage = ClientUsage(
        (use(topic="old", last_ms=5 * DAY), use(topic="used", last_ms=50 * DAY)),
        {"old": DAY, "never": DAY, "used": DAY, "young": 30 * DAY},
        {},
        {},
    )
    found = judged(usage, ["never", "new", "old", "used", "young"], 10 * DAY)
    assert found.unused == (UnusedTopic("never", None, DAY), UnusedTopic("old", 5 * DAY, DAY))
    assert found.not_known == ("new", "young")


def test_nothing_is_unused_while_a_broker_is_silent():
    """It may know of a use."""
    error = OttlaError(ErrorCode.NETWORK_EXCEPTION, "gone")
    usage = ClientUsage((), {"t": 0}, {}, {2: error})
    assert judged(usage, ["t"], DAY).not_known == ("t",)


def reason(broker_id=1, reason="follower", detail="3", last_ms=100, count=1, total_ms=200):
    return DelayReason(
        broker_id, "c", "PRODUCE", reason, detail, PLACE, 1, last_ms, count, total_ms, total_ms
    )


def test_slow_requests_are_explained_by_cause_the_costliest_first():
    """Causes before the requested time are left out; those of several brokers are added."""
    slow = SlowRequest(1, "c", "PRODUCE", "follower", "3", PLACE, 100, 200)
    found = explained(
        ClientDelays(
            (
                reason("quota", reason="quota", detail="", total_ms=250),
                reason(),
                reason(broker_id=2, total_ms=300),
                reason(reason="size", last_ms=10, total_ms=9_999),
            ),
            (slow, SlowRequest(1, "c", "FETCH", "quota", "", None, 10, 999)),
            (),
            {},
        ),
        50,
    )
    assert [(one.count, one.total_ms, one.longest_ms) for one in found.causes] == [
        (2, 500, 300),
        (1, 250, 250),
    ]
    assert found.causes[0].cause == "waited for broker 3, the last replica to flush the batch"
    assert "`ottla why isr t-3`" in found.causes[0].remedy
    assert found.slowest == (slow,)


def test_a_failure_is_said_with_its_place_and_time():
    """And with what the broker said."""
    failure = ClientFailure(
        1, "c", "FETCH", ErrorCode.OFFSET_OUT_OF_RANGE, PLACE, 0, 60_000, 3, "at 7"
    )
    assert failure_words(failure) == (
        "FETCH of t-3 failed 3 times within 1 minute (OFFSET_OUT_OF_RANGE): at 7"
    )
