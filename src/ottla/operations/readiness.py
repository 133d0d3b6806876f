"""Waits until a cluster is ready: it answers and leads, or each broker has proven itself.

A proof is a record in `__ottla_canary`, in a partition that the broker leads: acks=all was
answered, all replicas are in sync afterwards, and the broker returned the record. The topic is
created on first use.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.base.chance import new_uuid
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.connection.cluster import connections_of
from ottla.client.consumer.consumer import Consumer
from ottla.client.producer.producer import Producer
from ottla.metadata.canary import CONFIGS, REPLICAS, TOPIC, missing, partition_of, replicas_for

_CLIENT_ID = "ottla-canary"
_PAUSE_S = 0.2
_STEP_MS = 5_000
_NOT_SEEN = "the record was acknowledged, and the broker did not return it within 5 s"


@dataclass(frozen=True, slots=True)
class Proof:
    """What a broker did; `failure` is None if all is well.

    The rest is of a proof only. Times in ms; `clock_ms` is how far the broker's clock is ahead of
    this machine's, known to half of `written_ms`.
    """

    broker_id: int
    failure: str | None = None
    replicas: tuple[int, ...] = ()
    written_ms: float = 0.0
    read_ms: float = 0.0
    clock_ms: float = 0.0


class _WrittenRecord(NamedTuple):
    broker_id: int
    offset: int
    value: bytes


async def ready(bootstrap: str, brokers: int, timeout_s: float, *, proves: bool) -> list[Proof]:
    """Return what each broker did last, by id, within `timeout_s`; all are well, or time is over.

    `brokers` is how many there must be. Raises the last OttlaError if no state is known in time.
    """
    known: dict[int, Proof] = {}
    failure = OttlaError(ErrorCode.REQUEST_TIMED_OUT, f"no answer of {bootstrap} in time")
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    await (_prove if proves else _ask)(bootstrap, brokers, known)
                    if all(one.failure is None for one in known.values()):
                        break
                except OttlaError as error:
                    failure = error
                    if not known and not error.code.retriable and error.code not in _TEMPORARY:
                        raise
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        if not known:
            raise failure from None
    return [known[broker] for broker in sorted(known)]


_TEMPORARY = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_REPLICATION_FACTOR)


async def _ask(bootstrap: str, brokers: int, known: dict[int, Proof]) -> None:
    """Ask each broker for its versions, and the cluster for partitions without a leader."""
    async with _admin(bootstrap) as admin:
        live = await _live(admin, brokers)
        cluster = connections_of(admin)
        for broker in live:
            known[broker] = Proof(broker)
            try:
                await cluster.connection(broker)
            except OttlaError as error:
                known[broker] = Proof(broker, error.message)
        for view in await admin.topics.all(internal=True):
            for entry in view.partitions:
                if entry.leader < 0:
                    first, name = entry.replicas[0], f"{view.name}-{entry.partition}"
                    known[first] = Proof(first, f"{name} has no leader; `ottla why leader {name}`")


def _admin(bootstrap: str) -> Admin:
    return Admin(bootstrap, client_id=_CLIENT_ID, default_api_timeout_ms=_STEP_MS)


async def _live(admin: Admin, brokers: int) -> list[int]:
    live = await admin.cluster.brokers()
    if len(live) < brokers:
        raise OttlaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"{len(live)} of {brokers} brokers are alive: {live}; start the others",
        )
    return live


async def _prove(bootstrap: str, brokers: int, known: dict[int, Proof]) -> None:
    """Write a record to each broker, and read it back; set what each did in `known`."""
    async with _admin(bootstrap) as admin:
        live = await _live(admin, brokers)
        known |= {
            broker: Proof(broker, "no answer in time") for broker in live if broker not in known
        }
        led = await _arranged(admin, live, known)
        async with Producer(
            bootstrap, client_id=_CLIENT_ID, delivery_timeout_ms=_STEP_MS, linger_ms=0
        ) as producer:
            await producer.partitions_for(TOPIC)  # So that connecting is not counted.
            written = dict(
                await asyncio.gather(*(_write(producer, *each, known) for each in led.items()))
            )
        await _read(bootstrap, written, known)
        for one in await admin.partitions.describe([TOPIC]):
            late = sorted(set(one.replicas) - set(one.isr))
            proof = known.get(one.leader)
            if proof is None or proof.failure is not None or one.name not in written:
                continue
            why = (
                f"{one.name} has replicas that are not in sync: {late}; `ottla why isr {one.name}`"
            )
            known[one.leader] = replace(proof, replicas=one.replicas, failure=why if late else None)


async def _arranged(admin: Admin, live: list[int], known: dict[int, Proof]) -> Mapping[int, int]:
    """Return the partition that each broker leads; create what is missing of the topic."""
    if TOPIC not in await admin.topics.list(internal=True):
        lists = tuple(missing(live, ()))
        new = NewTopic(name=TOPIC, config=CONFIGS, assignments=lists)
        await admin.topics.create_all(new)
    view = await admin.topics.describe(TOPIC)
    lists = tuple(entry.replicas for entry in view.partitions)
    if added := missing(live, lists):
        await admin.topics.create_partitions(TOPIC, len(lists) + len(added), assignments=added)
    # The topic was created when there were fewer brokers; its records are tiny.
    thin = {
        TopicPartition(TOPIC, index): replicas_for(replicas[0], live)
        for index, replicas in enumerate(lists)
        if replicas[0] in live and len(replicas) < min(REPLICAS, len(live))
    }
    if thin:
        await admin.partitions.reassign(thin)
    if added or thin:
        known |= {broker: Proof(broker, f"{TOPIC} is being extended to it") for broker in live}
        return {}
    for replicas in lists:
        if replicas[0] not in live:
            known[replicas[0]] = Proof(replicas[0], f"broker {replicas[0]} is down; start it")
    led: dict[int, int] = {}
    for broker in live:
        index = partition_of(broker, lists)
        if index is None or view.partitions[index].leader != broker:
            known[broker] = Proof(broker, f"it does not lead its partition of {TOPIC} yet")
            if index is not None:
                await admin.partitions.elect_leaders("preferred", [TopicPartition(TOPIC, index)])
        else:
            led[broker] = index
    return led


async def _write(
    producer: Producer, broker: int, partition: int, known: dict[int, Proof]
) -> tuple[TopicPartition, _WrittenRecord]:
    """Write a record; its offset is -1 if it was not accepted."""
    value, began_s, now_ms = new_uuid().bytes, time.monotonic(), time.time() * 1000
    name = TopicPartition(TOPIC, partition)
    try:
        sent = await producer.send_and_wait(TOPIC, value, partition=partition)
    except OttlaError as error:
        known[broker] = Proof(broker, error.message)
        return name, _WrittenRecord(broker, -1, value)
    written_ms = (time.monotonic() - began_s) * 1000
    clock_ms = sent.timestamp_ms - now_ms - written_ms / 2
    known[broker] = Proof(broker, _NOT_SEEN, (), written_ms, 0.0, clock_ms)
    return name, _WrittenRecord(broker, sent.base_offset, value)


async def _read(
    bootstrap: str, written: Mapping[TopicPartition, _WrittenRecord], known: dict[int, Proof]
) -> None:
    """Read the records back; a broker that returns its record has no failure any more."""
    left = {name: one for name, one in written.items() if one.offset >= 0}
    async with Consumer(bootstrap, client_id=_CLIENT_ID, fetch_max_wait_ms=100) as consumer:
        await consumer.assign(list(left))
        for name, one in left.items():
            consumer.seek(name, one.offset)
        began_s = time.monotonic()
        while left and (time.monotonic() - began_s) * 1000 < _STEP_MS:
            for record in await consumer.poll(timeout=0.5):
                took_ms = (time.monotonic() - began_s) * 1000
                name = TopicPartition(record.topic, record.partition)
                wanted = left.get(name)
                if wanted is not None and wanted[1:] == (record.offset, record.value):
                    proof = known[wanted.broker_id]
                    known[wanted.broker_id] = replace(proof, failure=None, read_ms=took_ms)
                    del left[name]
