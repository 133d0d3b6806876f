"""The clients of a simulated run, and the history they write.

Producers with idempotence, readers of all partitions, members of one group, and a client that
asks for the ends: all on `ottla.client`'s own face, each in a process and on a host of its own.
"""

import asyncio
from collections.abc import Sequence
from random import Random

from ottla.base.chance import new_random
from ottla.base.errors import OttlaError
from ottla.client import (
    Consumer,
    ConsumerOptions,
    Delivery,
    Producer,
    ProducerOptions,
    Records,
    TopicPartition,
)
from verify.history.operation import Step
from verify.history.recorder import HistoryRecorder
from verify.simulation.worlds.profile import Profile

TOPIC = "t"
GROUP = "g"
_SENDING = ProducerOptions(
    request_timeout_ms=2_000,
    connect_timeout_ms=1_000,
    delivery_timeout_ms=15_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=300,
)
_READING = ConsumerOptions(
    enable_auto_commit=False,
    request_timeout_ms=2_000,
    default_api_timeout_ms=10_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=300,
    session_timeout_ms=6_000,
    heartbeat_interval_ms=1_000,
    max_poll_interval_ms=10_000,
)
# So many of a producer's sends may be without an answer.
_OPEN_SENDS = 5
_AGAIN_S = 0.2
# Long sleeps are cut into parts of so long.
_SLEEP_MAX_S = 10.0


class Workload:
    """All clients of one run. They begin nothing new once `is_over`."""

    def __init__(
        self, bootstrap: Sequence[str], profile: Profile, recorder: HistoryRecorder
    ) -> None:
        self.bootstrap = list(bootstrap)
        self.profile = profile
        self.recorder = recorder
        self.is_over = False
        # Set when readers may go, too.
        self.readers_are_done = False

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(TOPIC, number)

    async def _sleep(self, seconds: float) -> None:
        """Wait so long, but not much longer than until it is over."""
        while seconds > _SLEEP_MAX_S and not self.is_over:
            await asyncio.sleep(_SLEEP_MAX_S)
            seconds -= _SLEEP_MAX_S
        if not self.is_over:
            await asyncio.sleep(seconds)

    # -- producers

    async def produce(self, name: str) -> None:
        """Send batches of a few records to partitions drawn, until it is over."""
        await self._produce(name, _SENDING)

    async def produce_hastily(self, name: str) -> None:
        """The same, waiting for the leaders only: what these acknowledge may be lost."""
        await self._produce(name, {**_SENDING, "acks": 1})

    async def _produce(self, name: str, options: ProducerOptions) -> None:
        chance = new_random()
        number = 0
        quality = {} if options.get("acks", "all") == "all" else {"acks": 1, "idempotent": False}
        sends: dict[asyncio.Task[None], None] = {}
        producer = Producer(self.bootstrap, **options)
        # Before it knows the topic, what it sends together is in no order.
        await producer.partitions_for(TOPIC)
        while not self.is_over:
            await self._sleep(chance.expovariate(1000 / self.profile.send_every_ms))
            if len(sends) >= _OPEN_SENDS:
                await asyncio.wait(list(sends), return_when=asyncio.FIRST_COMPLETED)
            count = chance.choice([1, 1, 2, 5])
            values = [f"{name}/{number + n}" for n in range(count)]
            number += count
            task = asyncio.ensure_future(self._send(name, producer, values, chance, **quality))
            sends[task] = None
            task.add_done_callback(sends.pop)
        if sends:
            await asyncio.wait(list(sends))
        try:
            await producer.close()
        except OttlaError:
            return  # The history has the outcome of each of its records.

    async def _send(
        self, name: str, producer: Producer, values: list[str], chance: Random, **quality: object
    ) -> None:
        partition = chance.randrange(self.profile.partitions)
        if self.profile.busy_share and chance.random() < self.profile.busy_share:
            partition = 0
        at = f"{TOPIC}-{partition}"
        padding = "." * chance.randrange(self.profile.record_bytes_max)
        op = self.recorder.invoke(
            name,
            "send",
            steps=[Step("send", at, None, value) for value in values],
            **quality,
        )
        column = [f"{value} {padding}".encode() for value in values]
        try:
            deliveries = await producer.send_batch(TOPIC, column, partition=partition)
            for delivery in deliveries:
                await delivery
        except OttlaError:
            self.recorder.info(op)
        else:
            self.recorder.ok(op, steps=_acknowledged(at, values, deliveries))

    # -- readers

    def reading(self, group: str | None = None) -> ConsumerOptions:
        """How consumers read here."""
        wait_ms = self.profile.fetch_wait_ms
        return {
            **_READING,
            "group_id": group,
            "fetch_max_wait_ms": wait_ms,
            "request_timeout_ms": _READING["request_timeout_ms"]
            + (wait_ms if wait_ms > 500 else 0),
        }

    async def read(self, name: str) -> None:
        """Read all partitions from their beginning, now and then anew."""
        chance = new_random()
        partitions = [self.partition(number) for number in range(self.profile.partitions)]
        while not self.readers_are_done:
            async with Consumer(self.bootstrap, **self.reading()) as consumer:
                if not await self.assign(name, consumer, partitions):
                    continue
                for _ in range(chance.randrange(10, 200)):
                    if self.readers_are_done:
                        break
                    await self.poll(name, consumer)
                    await asyncio.sleep(chance.random() * (self.profile.idle_ms / 1000))

    async def assign(
        self, name: str, consumer: Consumer, partitions: Sequence[TopicPartition]
    ) -> bool:
        """Have `consumer` read these, and write that down; False, after a while, if it cannot."""
        op = self.recorder.invoke(name, "assign")
        try:
            await consumer.assign(partitions)
        except OttlaError:
            self.recorder.info(op)
            await asyncio.sleep(_AGAIN_S)
            return False
        self.recorder.ok(op)
        return True

    async def poll(self, name: str, consumer: Consumer) -> None:
        """Poll once, and write down what came."""
        op = self.recorder.invoke(name, "poll")
        try:
            found = (await consumer.poll(self.profile.poll_ms / 1000)).by_partition
        except OttlaError:
            self.recorder.info(op)
            await asyncio.sleep(_AGAIN_S)
        else:
            self.recorder.ok(op, steps=_read(found))

    async def ask_ends(self, name: str) -> None:
        """Ask for the high watermarks."""
        chance = new_random()
        partitions = [self.partition(number) for number in range(self.profile.partitions)]
        async with Consumer(self.bootstrap, **self.reading()) as consumer:
            while not self.is_over:
                await self._sleep(chance.expovariate(1000 / self.profile.ends_every_ms))
                op = self.recorder.invoke(name, "end")
                try:
                    ends = await consumer.end_offsets(partitions)
                except OttlaError:
                    self.recorder.info(op)
                else:
                    self.recorder.ok(op, offsets={_named(p): end for p, end in ends.items()})

    # -- members of a group

    async def take_part(self, name: str) -> None:
        """Read as a member, commit, ask what is committed, leave and come again."""
        chance = new_random()
        while not self.readers_are_done:
            async with Consumer(self.bootstrap, **self.reading(GROUP)) as consumer:
                self.recorder.ok(self.recorder.invoke(name, "subscribe"))
                consumer.subscribe(TOPIC)
                for _ in range(chance.randrange(10, 60)):
                    if self.readers_are_done:
                        break
                    await self.poll(name, consumer)
                    if chance.random() < 0.3:
                        await self._commit(name, consumer)
                    await asyncio.sleep(chance.random() * (self.profile.idle_ms / 500))

    async def _commit(self, name: str, consumer: Consumer) -> None:
        owned = sorted(consumer.assignment())
        if not owned:
            return
        try:
            offsets = {partition: await consumer.position(partition) for partition in owned}
        except OttlaError:
            return
        op = self.recorder.invoke(name, "commit", group=GROUP)
        try:
            await consumer.commit(offsets)
        except OttlaError:
            self.recorder.info(op)
            return
        self.recorder.ok(op, offsets={_named(p): offset for p, offset in offsets.items()})


def _named(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _acknowledged(at: str, values: list[str], deliveries: list[Delivery]) -> list[Step]:
    # Where a broker recognises an old batch without knowing its place, it answers no offset.
    offsets = [
        delivery.base_offset + number if delivery.base_offset >= 0 else None
        for delivery in deliveries
        for number in range(delivery.record_count)
    ]
    return [Step("send", at, *pair) for pair in zip(offsets, values, strict=True)]


def _read(found: list[Records]) -> list[Step]:
    return [
        Step("poll", f"{records.topic}-{records.partition}", record.offset, value_of(record.value))
        for records in found
        for record in records.records
    ]


def value_of(value: bytes | None) -> str:
    """What identifies a record: its value without the padding."""
    return "" if value is None else value.split(b" ", 1)[0].decode()
