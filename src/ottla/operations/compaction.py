"""Compacts a topic at once, and waits for completion."""

import asyncio

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CompactAction, CompactionStanding

_POLL_S = 0.1


async def compact(
    admin: Admin, topic: str, *, timeout_s: float | None = None
) -> list[CompactionStanding]:
    """Request compaction of every replica of the topic now; with `timeout_s`, wait for it.

    Raises UnknownTopic, BrokerRefused where the topic is not compacted, REQUEST_TIMED_OUT; and,
    when it waited, UNKNOWN_SERVER_ERROR with the reasons of the brokers that failed.
    """
    standings = await admin.compaction.of_topic(topic, CompactAction.CLEAN)
    if timeout_s is None:
        return standings
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while not all(is_done(one) for one in standings):
        if loop.time() >= deadline_s:
            waiting = sorted({str(one.name) for one in standings if not is_done(one)})
            raise OttlaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"not compacted after {timeout_s} s: {', '.join(waiting)}; "
                f"`ottla why compaction {waiting[0]}` says what holds it up",
            )
        await asyncio.sleep(_POLL_S)
        standings = await admin.compaction.of_topic(topic)
    failed = [f"broker {one.broker_id}: {one.failure}" for one in standings if one.failure]
    if failed:
        raise OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "; ".join(failed))
    return standings


def is_done(one: CompactionStanding) -> bool:
    """Whether the cleaner has finished the request."""
    return one.wanted_end < 0 and not one.is_running
