"""Which clients use a topic, which topics no client uses, and why a client's requests are slow."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted, span_words
from ottla.client.admin import Admin
from ottla.client.admin.clients import (
    ClientDelays,
    ClientFailure,
    ClientUsage,
    ClientUse,
    DelayReason,
    SlowRequest,
)


async def users_of(admin: Admin, topic: str) -> ClientUsage:
    """Return the uses of a topic, those of several brokers by one client as one; the latest first.

    Raises UnknownTopic, and UnsupportedByBroker if the brokers are not Ottla's.
    """
    await admin.topics.describe(topic)
    usage = await admin.clients.usage([topic])
    return replace(usage, uses=merged(usage.uses))


def merged(uses: Iterable[ClientUse]) -> tuple[ClientUse, ...]:
    """Add up the uses of each client over all brokers; the broker id is that of its last use."""
    found: dict[tuple[str, ...], ClientUse] = {}
    for one in uses:
        key = (one.topic, one.direction, one.client_id, one.principal, one.library)
        known = found.get(key)
        if known is None:
            found[key] = one
            continue
        latest = max(known, one, key=lambda use: use.last_ms)
        found[key] = replace(
            latest,
            first_ms=min(known.first_ms, one.first_ms),
            size_bytes=known.size_bytes + one.size_bytes,
        )
    order = {"produce": 0, "fetch": 1}
    return tuple(
        sorted(found.values(), key=lambda one: (one.topic, order[one.direction], -one.last_ms))
    )


@dataclass(frozen=True, slots=True)
class UnusedTopic:
    """A topic without any use for a time. `last_ms` is its last known use; None if none is known.

    `since_ms` is the time since which every use would be known.
    """

    topic: str
    last_ms: int | None
    since_ms: int


@dataclass(frozen=True, slots=True)
class UnusedTopics:
    """Topics without any use for a time, and those of which too little is known to say so."""

    unused: tuple[UnusedTopic, ...]
    not_known: tuple[str, ...]
    usage: ClientUsage


async def unused_topics(admin: Admin, for_ms: int, now_ms: int) -> UnusedTopics:
    """Return the topics that no client has used for `for_ms`. Internal topics are left out.

    Raises UnsupportedByBroker if the brokers are not Ottla's.
    """
    usage = await admin.clients.usage()
    return judged(usage, await admin.topics.list(), now_ms - for_ms)


def judged(usage: ClientUsage, topics: Iterable[str], begin_ms: int) -> UnusedTopics:
    """Divide the topics without a use since `begin_ms`: whether all brokers watched so long."""
    last_ms: dict[str, int] = {}
    for one in usage.uses:
        last_ms[one.topic] = max(one.last_ms, last_ms.get(one.topic, -1))
    unused, not_known = [], []
    for topic in topics:
        if last_ms.get(topic, -1) >= begin_ms:
            continue
        since_ms = usage.since_ms.get(topic)
        if since_ms is None or since_ms > begin_ms or usage.silent:
            not_known.append(topic)
        else:
            unused.append(UnusedTopic(topic, last_ms.get(topic), since_ms))
    return UnusedTopics(tuple(unused), tuple(not_known), usage)


@dataclass(frozen=True, slots=True)
class SlowCause:
    """What a client's slow requests waited for in total, worst first, and what helps."""

    api: str
    cause: str
    remedy: str
    place: TopicPartition | None
    count: int
    total_ms: int
    longest_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class SlowDiagnosis:
    """Why requests of a client were slow or failed since a time."""

    causes: tuple[SlowCause, ...]
    slowest: tuple[SlowRequest, ...]
    failures: tuple[ClientFailure, ...]
    delays: ClientDelays


_CAUSES = {
    "flush": (
        "waited for the leader's own disk to flush the batch",
        "look at that broker's disk; `ottla partition move` takes the partition to another one",
    ),
    "follower": (
        "waited for broker {}, the last replica to flush the batch",
        "look at that broker's disk and network; `ottla why isr {place}` shows its state",
    ),
    "quota": (
        "waited because of a quota",
        "`ottla quota describe` shows it, `ottla quota alter` changes it",
    ),
    "transaction check": (
        "waited for the transaction's coordinator to confirm the partition",
        "`ottla txn list` shows the coordinator's state; look at its broker",
    ),
    "size": (
        "was so large that it was served in slices",
        "have the client send smaller requests (batch.size, max.request.size, fewer partitions)",
    ),
    "held the loop": (
        "took this long to compute, and no other request was served meanwhile",
        "have the client send smaller requests, and avoid compression that the broker must undo",
    ),
    "other": (
        "waited for the work of other brokers, or for the store",
        "`ottla cluster health` says whether brokers are slow or missing",
    ),
}


async def slow_requests(admin: Admin, client_id: str, since_ms: int) -> SlowDiagnosis:
    """Return why requests of a client were slow or failed since `since_ms`.

    Raises UnsupportedByBroker if the brokers are not Ottla's.
    """
    return explained(await admin.clients.delays([client_id]), since_ms)


def explained(delays: ClientDelays, since_ms: int) -> SlowDiagnosis:
    """Add up the reasons of slow requests since a time over brokers; the costliest first."""
    found: dict[tuple[object, ...], SlowCause] = {}
    for one in delays.reasons:
        if one.last_ms < since_ms:
            continue
        key = (one.api, one.reason, one.detail, one.place)
        known = found.get(key)
        cause = _cause(one)
        if known is not None:
            cause = replace(
                cause,
                count=known.count + one.count,
                total_ms=known.total_ms + one.total_ms,
                longest_ms=max(known.longest_ms, one.longest_ms),
                last_ms=max(known.last_ms, one.last_ms),
            )
        found[key] = cause
    return SlowDiagnosis(
        tuple(sorted(found.values(), key=lambda one: -one.total_ms)),
        tuple(one for one in delays.slowest if one.at_ms >= since_ms),
        tuple(
            sorted(
                (one for one in delays.failures if one.last_ms >= since_ms),
                key=lambda one: -one.count,
            )
        ),
        delays,
    )


def _cause(one: DelayReason) -> SlowCause:
    cause, remedy = _CAUSES.get(one.reason, _CAUSES["other"])
    return SlowCause(
        one.api,
        cause.format(one.detail),
        remedy.format(place=one.place or "TOPIC-P"),
        one.place,
        one.count,
        one.total_ms,
        one.longest_ms,
        one.last_ms,
    )


def failure_words(one: ClientFailure) -> str:
    """Return a failure in words: what fails, how often, since when in relation to its last time."""
    where = "" if one.place is None else f" of {one.place}"
    lasted = one.last_ms - one.first_ms
    during = f" within {span_words(lasted)}" if one.count > 1 and lasted else ""
    said = f": {one.detail}" if one.detail else ""
    return f"{one.api}{where} failed {counted(one.count, 'time')}{during} ({one.code.name}){said}"
