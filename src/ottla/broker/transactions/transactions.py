"""All transactional ids this broker coordinates, by the partitions it leads."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.coordinating import Shards, Ticket
from ottla.broker.partitions.partition import Partition
from ottla.broker.topics.internal_topics import TRANSACTION_STATE
from ottla.broker.transactions.enlisting import Enlisting
from ottla.broker.transactions.links import Links, idle_ms
from ottla.broker.transactions.marker_sender import MarkerSender
from ottla.broker.transactions.opening import Openings
from ottla.broker.transactions.shard import Command, TransactionShard, Upkeep
from ottla.transaction.coordinator import Coordinator
from ottla.transaction.settings import TransactionSettings
from ottla.transaction.turn import Decision

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

# A Command that is also given a producer id which was never used, or None.
NeedyCommand = Callable[[Coordinator, Any, int | None, int], Decision]

# How long a client's request waits for the markers of the transaction before.
PATIENCE_MS = 1_000
# How long an answer waits for its record to be committed.
_COMMIT_TIMEOUT_MS = 30_000


class Transactions:
    """Runs commands on transactional ids by the shards that hold them."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        settings = broker.settings
        self._settings = _transaction_settings(settings)
        self._load_bytes = settings.integer("transaction.state.log.load.buffer.size")
        links = Links(broker.peers, idle_ms=idle_ms(settings))
        self.markers = MarkerSender(broker, links)
        self.enlisting = Enlisting(broker, self, Links(broker.peers, idle_ms=idle_ms(settings)))
        self.openings = Openings(self.enlisting)
        self._links = (links, self.enlisting.links)
        self._shards = Shards(
            TRANSACTION_STATE, broker, broker.partitions, broker.purgatory, self._shard_of
        )
        # Whether there was a shard ever, so that there is something to look after.
        self._looks = False

    def start(self) -> None:
        """Load what is on disk."""
        self._shards.take_up()

    def on_role(self, partition: Partition) -> None:
        """A partition changed hands: its ids are loaded here, or given up."""
        self._shards.on_role(partition)

    def on_image(self) -> None:
        """The image has changed: what is asked of a broker that left is asked of another."""
        for links in self._links:
            links.keep_only(self._broker.image.brokers)

    def close(self) -> None:
        """The broker stops: tell whoever waits to look for another coordinator."""
        self._shards.close()
        for links in self._links:
            links.close()

    def partition_index(self, transactional_id: str) -> int | None:
        """Which partition of `__transaction_state` holds the id; None while there is no topic."""
        return self._shards.index_of(transactional_id)

    def shard(self, transactional_id: str) -> TransactionShard:
        """The shard of an id, loaded or not. Raises OttlaError (NOT_COORDINATOR)."""
        return self._shards.find(transactional_id, "transactional id")

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

    def shards(self) -> Iterator[TransactionShard]:
        """Every shard, also those that load."""
        return iter(self._shards)

    def _shard_of(self, partition: Partition) -> TransactionShard:
        if not self._looks:
            self._look_after_shards()
        return TransactionShard(
            partition,
            self._settings,
            self._broker.clock,
            self._broker.purgatory,
            self.markers.send,
            commit_timeout_ms=_COMMIT_TIMEOUT_MS,
            load_bytes=self._load_bytes,
        )

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
            if self._shards.closed:
                return
            for shard in self._shards:
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
