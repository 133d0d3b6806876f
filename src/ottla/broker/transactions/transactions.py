"""All transactional ids this broker coordinates, by the partitions it leads."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.coordinating import Ticket
from ottla.broker.internal_topics import TRANSACTION_STATE
from ottla.broker.partition import Partition
from ottla.broker.transactions.enlisting import Enlisting
from ottla.broker.transactions.links import Links
from ottla.broker.transactions.marker_sender import MarkerSender
from ottla.broker.transactions.opening import Openings
from ottla.broker.transactions.shard import Command, Shard, Upkeep
from ottla.group.placement import partition_of
from ottla.transaction.coordinator import Coordinator
from ottla.transaction.settings import TransactionSettings
from ottla.transaction.turn import Decision

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

# A Command that is also given a producer id which was never used, or None.
NeedyCommand = Callable[[Coordinator, Any, int | None, int], Decision]

# How long a client's request waits for the markers of the transaction before.
PATIENCE_MS = 1_000
# A connection that nobody needs is given back after this time.
_IDLE_MS = 20_000
# How long an answer waits for its record to be committed.
_COMMIT_TIMEOUT_MS = 30_000
# How soon ids are waited for anew that could not be loaded yet.
_LOAD_AGAIN_MS = 200


class Transactions:
    """Finds the shard of a transactional id; takes shards up when their partitions are here.

    `__transaction_state` is made by whoever first looks for a coordinator.
    Invariant: a shard that is used belongs to the partition that is served under its number.
    """

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        settings = broker.settings
        self._settings = _transaction_settings(settings)
        self._load_bytes = settings.integer("transaction.state.log.load.buffer.size")
        idle_ms = settings.integer("connections.max.idle.ms")
        idle_ms = min(_IDLE_MS, max(1, idle_ms // 3)) if idle_ms > 0 else _IDLE_MS
        links = Links(broker.peers, idle_ms=idle_ms)
        self.markers = MarkerSender(broker, links)
        self.enlisting = Enlisting(broker, self, Links(broker.peers, idle_ms=idle_ms))
        self.openings = Openings(self.enlisting)
        self._links = (links, self.enlisting.links)
        self._shards: dict[int, Shard] = {}
        self._loads: dict[asyncio.Task[None], None] = {}
        self._closed = False
        # Whether there was a shard ever, so that there is something to look after.
        self._looks = False

    def start(self) -> None:
        """Load what is on disk."""
        self.take_up()

    def take_up(self) -> None:
        """Have a shard for every partition of `__transaction_state` that is led here."""
        for partition in self._broker.partitions:
            self.on_role(partition)

    def on_role(self, partition: Partition) -> None:
        """A partition changed hands: its ids are loaded here, or given up."""
        if partition.topic != TRANSACTION_STATE or self._closed:
            return
        shard = self._shards.get(partition.index)
        if shard is not None and (
            partition.leader is None
            or shard.partition is not partition
            or shard.leader_epoch != partition.leader_epoch
        ):
            shard.close(ErrorCode.NOT_COORDINATOR)
            del self._shards[partition.index]
        if partition.leader is not None:
            self._shard_of(partition)

    def close(self) -> None:
        """The broker stops: tell whoever waits to look for another coordinator."""
        self._closed = True
        for task in list(self._loads):
            task.cancel()
        for shard in self._shards.values():
            shard.close(ErrorCode.NOT_COORDINATOR)
        self._shards.clear()
        for links in self._links:
            links.close()

    def partition_index(self, transactional_id: str) -> int | None:
        """Which partition of `__transaction_state` holds the id; None while there is no topic."""
        topic = self._broker.image.topic(TRANSACTION_STATE)
        return None if topic is None else partition_of(transactional_id, len(topic.partitions))

    def shard(self, transactional_id: str) -> Shard:
        """The shard of an id, loaded or not. Raises OttlaError (NOT_COORDINATOR)."""
        index = self.partition_index(transactional_id)
        try:
            if index is not None:
                partition = self._broker.partitions.get(TRANSACTION_STATE, index)
                partition.check_led()
                return self._shard_of(partition)
        except OttlaError:
            pass  # It is not led here.
        raise OttlaError(
            ErrorCode.NOT_COORDINATOR,
            f"this broker does not coordinate transactional id {transactional_id!r}; "
            "find its coordinator anew",
        )

    def run(
        self,
        transactional_id: str,
        ticket: Ticket,
        command: Command,
        *,
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        """Carry out a command on an id; see `Shard.run`. An error is given as the answer."""
        try:
            shard = self.shard(transactional_id)
            shard.run(transactional_id, ticket, command, patience_ms=patience_ms)
        except OttlaError as error:
            ticket.fail(error.code)

    def run_with_producer_id(
        self,
        transactional_id: str,
        ticket: Ticket,
        command: NeedyCommand,
    ) -> None:
        """`run` a command that may need a producer id which was never used: it is given one."""
        try:
            needed = self.shard(transactional_id).loaded().needs_producer_id(transactional_id)
        except OttlaError as error:
            ticket.fail(error.code)
            return
        producer_ids = self._broker.producer_ids
        fresh = producer_ids.take() if needed else None

        def go_on(fresh: int | None) -> None:
            self.run(
                transactional_id,
                ticket,
                lambda coordinator, asker, now_ms: command(coordinator, asker, fresh, now_ms),
            )

        if needed and fresh is None:
            self._broker.spawn(_reserve(self._broker, go_on, ticket))
        else:
            go_on(fresh)

    def shards(self) -> Iterator[Shard]:
        """Every shard, also those that load."""
        return iter(self._shards.values())

    def _shard_of(self, partition: Partition) -> Shard:
        shard = self._shards.get(partition.index)
        if shard is not None:
            if shard.partition is partition:
                return shard
            shard.close(ErrorCode.NOT_COORDINATOR)
        shard = Shard(
            partition,
            self._settings,
            self._broker.clock,
            self._broker.purgatory,
            self.markers.send,
            commit_timeout_ms=_COMMIT_TIMEOUT_MS,
            load_bytes=self._load_bytes,
        )
        if not self._looks:
            self._look_after_shards()
        self._shards[partition.index] = shard
        if partition.log_end_offset == partition.log_start_offset:
            shard.load_nothing()
        else:
            # What it is loaded from must be committed first: another leader might not have it.
            end = partition.log_end_offset
            partition.on_high_watermark(end, partial(self._load, shard))
        return shard

    def _load(self, shard: Shard, code: ErrorCode) -> None:
        index = shard.partition.index
        if self._shards.get(index) is not shard:
            return
        if code is not ErrorCode.NONE:
            # In doubt for a moment, or with too few replicas: if it leads on, nobody else loads.
            del self._shards[index]
            self._broker.purgatory.schedule(_LOAD_AGAIN_MS, self.take_up)
            return
        task = asyncio.get_running_loop().create_task(shard.load_or_log())
        self._loads[task] = None
        task.add_done_callback(lambda done: self._loads.pop(done, None))

    def _look_after_shards(self) -> None:
        """Abort what takes too long, and forget what nobody uses, from time to time."""
        self._looks = True
        settings = self._broker.settings
        self._every(
            settings.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            Coordinator.abort_overdue,
        )
        self._every(
            settings.integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
            Coordinator.forget_unused,
        )

    def _every(self, interval_ms: int, upkeep: Upkeep) -> None:
        def look() -> None:
            if self._closed:
                return
            for shard in list(self._shards.values()):
                shard.upkeep(upkeep)
            self._broker.purgatory.schedule(interval_ms, look)

        self._broker.purgatory.schedule(interval_ms, look)


async def _reserve(broker: "Broker", then: Callable[[int], None], ticket: Ticket) -> None:
    try:
        fresh = await broker.producer_ids.reserve()
    except OttlaError as error:
        ticket.fail(error.code)
        return
    then(fresh)


def _transaction_settings(settings: BrokerSettings) -> TransactionSettings:
    return TransactionSettings(
        max_timeout_ms=settings.integer("transaction.max.timeout.ms"),
        id_expiration_ms=settings.integer("transactional.id.expiration.ms"),
    )
