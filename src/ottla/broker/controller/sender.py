"""Sends the controller's requests to one broker until it answers them or its registration ends.

A sender keeps the names of changed partitions, not requests. Each request is built from the newest
state when it is sent, so outdated states are never sent, and a slow broker gets one request for
all changes that it missed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.context import Context
from ottla.broker.controller.messages import ControllerMessages
from ottla.broker.controller.store_access import Planned
from ottla.metadata.image import BrokerImage, TopicImage
from ottla.wire.messages.between_brokers import LeaderAndIsrResponse, StopReplicaResponse
from ottla.wire.notation import Message


class Reports(Protocol):
    """Receives a sender's reports; `BrokerReports` implements it."""

    def deposed(self) -> None:
        """Note that a broker has seen a newer controller epoch."""

    def deleted(self, broker: BrokerImage, names: dict[TopicPartition, int]) -> None:
        """Note that a broker has deleted replicas, and the bytes of each in its trash, or -1."""

    def refused(self, broker: BrokerImage) -> None:
        """Note that a broker's address refuses connections."""

    def sending(self, broker: BrokerImage) -> None:
        """Note that a request is being sent to a broker."""

    def answered(self, broker: BrokerImage) -> None:
        """Note that a broker has answered, with or without an error."""

    def failed(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """Note that a broker cannot use its replicas of these partitions."""


_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0

# Sends a request to a broker and returns its response. Raises OttlaError.
Deliver = Callable[[BrokerImage, Message], Awaitable[Any]]


class BrokerSender:
    """Sends requests to one broker under one of its registrations."""

    def __init__(
        self,
        broker: BrokerImage,
        context: Context,
        messages: ControllerMessages,
        deliver: Deliver,
        reports: Reports,
    ) -> None:
        self.broker = broker
        self._context = context
        self._messages = messages
        self._deliver = deliver
        self._reports = reports
        # The partitions whose states must be sent, in order, so that simulations are repeatable.
        self._states: dict[TopicPartition, None] = {}
        self._metadata: dict[TopicPartition, None] = {}
        self._deleted: dict[str, TopicImage] = {}
        # The replicas to stop, with the leader epoch to send for each.
        self._stops: dict[TopicPartition, int] = {}
        self._deletions: dict[TopicPartition, int] = {}
        self._brokers_changed = False
        self._everything = True
        # The partitions of a LeaderAndIsr that is not answered yet.
        self._sending: dict[TopicPartition, None] = {}
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start sending, beginning with the whole state."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stop sending."""
        if self._task is not None:
            self._task.cancel()
        self._idle.set()

    def everything(self) -> None:
        """Send the whole state again."""
        self._everything = True
        self._want()

    def brokers(self) -> None:
        """Send the changed set of live brokers."""
        self._brokers_changed = True
        self._want()

    def partitions(self, names: Iterable[TopicPartition]) -> None:
        """Send changed partitions: metadata to every broker, LeaderAndIsr to the replicas."""
        for name in names:
            self._metadata[name] = None
            self._states[name] = None
        self._want()

    def metadata(self, names: Iterable[TopicPartition]) -> None:
        """Send changed metadata of these partitions."""
        self._metadata |= dict.fromkeys(names)
        self._want()

    def gone(self, topic: TopicImage) -> None:
        """Send metadata that a topic was deleted."""
        self._deleted[topic.name] = topic
        self._want()

    def stop_replicas(self, stops: dict[TopicPartition, int], *, delete: bool) -> None:
        """Send a StopReplica for the partitions in `stops`, which maps them to leader epochs."""
        (self._deletions if delete else self._stops).update(stops)
        self._want()

    def unsent(self) -> Iterable[TopicPartition]:
        """Return the partitions whose current state this broker may not have confirmed."""
        if self._everything:
            return list(self._context.names())
        return [*(self._sending | self._states)]

    async def settled(self) -> None:
        """Return once the broker has confirmed everything, or the sender has stopped."""
        await self._idle.wait()

    def _want(self) -> None:
        self._idle.clear()
        self._wanted.set()

    async def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._send_all()
                pause_s = _FIRST_PAUSE_S
                if not self._wanted.is_set():
                    self._idle.set()
            except OttlaError as error:
                _log.debug("sending to broker %d: %s", self.broker.id, error.message)
                if isinstance(error.__cause__, ConnectionRefusedError):
                    self._reports.refused(self.broker)
                self._wanted.set()
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            except Exception:  # noqa: BLE001  # The supervisor of this task.
                _log.exception("sending to broker %d failed unexpectedly", self.broker.id)
                self._everything = True
                self._wanted.set()
                await asyncio.sleep(_LONGEST_PAUSE_S)

    async def _send_all(self) -> None:
        """Send one round; failed requests are sent again. Raises OttlaError."""
        everything, self._everything = self._everything, False
        # Take both sets at the same time: a leader must get its role before clients see it.
        states, self._states = self._states, {}
        metadata, self._metadata = self._metadata, {}
        if everything:
            states = metadata = dict.fromkeys(self._context.names())
        self._sending = states
        try:
            await self._send_states(states, full=everything)
            self._sending = states = {}
            await self._send_metadata(metadata, full=everything)
            # A replica stops only after its broker can redirect clients.
            await self._send_stops()
            await self._send_deletions()
        except BaseException:
            self._everything = self._everything or everything
            self._states = states | self._states
            self._sending = {}
            self._metadata = metadata | self._metadata
            raise

    async def _send_stops(self) -> None:
        stops, self._stops = self._stops, {}
        if not stops:
            return
        request = self._messages.stop_replica(self.broker, stops, delete=False)
        try:
            self._check(await self._ask(request))
        except BaseException:
            self._stops = stops | self._stops
            raise

    async def _send_states(self, names: dict[TopicPartition, None], *, full: bool) -> None:
        request = self._messages.leader_and_isr(self._context, self.broker, names, full=full)
        if not request.topic_states and not full:
            return
        response = await self._ask(request)
        self._check(response)
        failed = _failed_states(response, {topic.id: topic.name for topic in self._topics()})
        if failed:
            self._reports.failed(self.broker, failed)

    async def _send_metadata(self, names: dict[TopicPartition, None], *, full: bool) -> None:
        deleted, self._deleted = self._deleted, {}
        brokers_changed, self._brokers_changed = self._brokers_changed, False
        if not (names or deleted or brokers_changed or full):
            return
        request = self._messages.update_metadata(
            self._context, self.broker, names, list(deleted.values()), full=full
        )
        try:
            self._check(await self._ask(request))
        except BaseException:
            self._deleted = deleted | self._deleted
            self._brokers_changed = True
            raise

    async def _send_deletions(self) -> None:
        deletions, self._deletions = self._deletions, {}
        if not deletions:
            return
        topics = self._context.topics
        topic_ids = {name: topics[name].id for name in self._context.deleting if name in topics}
        request = self._messages.stop_replica(
            self.broker, deletions, delete=True, topic_ids=topic_ids
        )
        try:
            response = await self._ask(request)
            self._check(response)
        except BaseException:
            self._deletions = deletions | self._deletions
            raise
        refused = _failed_stops(response)
        kept = _kept_bytes(response)
        self._reports.deleted(
            self.broker, {name: kept.get(name, -1) for name in deletions if name not in refused}
        )
        if refused:
            self._deletions = {n: e for n, e in deletions.items() if n in refused} | self._deletions
            raise OttlaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"broker {self.broker.id} could not delete {len(refused)} replica(s)",
            )

    async def _ask(self, request: Message) -> Any:
        self._reports.sending(self.broker)
        response = await self._deliver(self.broker, request)
        self._reports.answered(self.broker)
        return response

    def _topics(self) -> Iterable[TopicImage]:
        return self._context.topics.values()

    def _check(self, response: Any) -> None:
        """Raise OttlaError if the broker rejected the whole request."""
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE:
            return
        if code is ErrorCode.STALE_CONTROLLER_EPOCH:
            self._reports.deposed()
        raise OttlaError(code, f"broker {self.broker.id} refused: {code.name}")


def _failed_states(response: LeaderAndIsrResponse, names: dict[Any, str]) -> list[TopicPartition]:
    return [
        TopicPartition(names[topic.topic_id], partition.partition_index)
        for topic in response.topics
        for partition in topic.partition_errors
        if partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR and topic.topic_id in names
    ]


def _failed_stops(response: StopReplicaResponse) -> dict[TopicPartition, None]:
    return {
        TopicPartition(partition.topic_name, partition.partition_index): None
        for partition in response.partition_errors
        if partition.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    }


def _kept_bytes(response: StopReplicaResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(one.topic_name, one.partition_index): one.kept_bytes
        for one in response.partition_errors
    }


class Senders:
    """The senders of all live brokers."""

    def __init__(self, context: Context, messages: ControllerMessages, deliver: Deliver) -> None:
        self._context = context
        self._messages = messages
        self._deliver = deliver
        self._by_broker: dict[BrokerId, BrokerSender] = {}

    def __iter__(self) -> Iterator[BrokerSender]:
        return iter(self._by_broker.values())

    def get(self, broker_id: BrokerId) -> BrokerSender | None:
        """Return the sender of a live broker; None if there is none."""
        return self._by_broker.get(broker_id)

    def epochs(self) -> dict[BrokerId, int]:
        """Return the epochs of the brokers that the senders send to."""
        return {broker_id: sender.broker.epoch for broker_id, sender in self._by_broker.items()}

    def end_old(self) -> list[BrokerId]:
        """Stop the senders of ended registrations, and return their brokers."""
        live = self._context.live
        ended = [broker for broker, epoch in self.epochs().items() if live.get(broker) != epoch]
        for broker_id in ended:
            self._by_broker.pop(broker_id).stop()
        return ended

    def begin_new(self, reports: Reports) -> None:
        """Start a sender for each broker without one; it first sends the whole state.

        The sender to this broker itself starts first, because its messages give this broker the
        addresses of the others.
        """
        own_id, brokers = self._messages.controller_id, self._context.brokers
        for broker_id in sorted(brokers, key=lambda broker: (broker != own_id, broker)):
            if broker_id not in self._by_broker:
                broker = brokers[broker_id]
                sender = BrokerSender(broker, self._context, self._messages, self._deliver, reports)
                self._by_broker[broker_id] = sender
                sender.start()

    def stop(self) -> None:
        """Stop sending."""
        for sender in self:
            sender.stop()
        self._by_broker.clear()

    # ------------------------------------------------------------ to all brokers

    def everything(self) -> None:
        """Send the whole state to all brokers again."""
        for sender in self:
            sender.everything()

    def brokers(self) -> None:
        """Send the changed set of live brokers."""
        for sender in self:
            sender.brokers()

    def partitions(self, names: list[TopicPartition]) -> None:
        """Send changed partitions: metadata to every broker, LeaderAndIsr to the replicas."""
        for sender in self:
            sender.partitions(names)

    def metadata(self, names: list[TopicPartition]) -> None:
        """Send changed metadata of these partitions."""
        for sender in self:
            sender.metadata(names)

    def changes(self, written: Iterable[Planned]) -> None:
        """Send written changes; brokers that are shutting down get them only as metadata."""
        written = list(written)
        names = [planned.name for planned in written]
        for broker_id, sender in self._by_broker.items():
            if broker_id in self._context.stopping:
                sender.metadata(names)
            else:
                sender.partitions(names)
        for name, before, change in written:
            for broker_id in before.replicas:
                if broker_id not in change.after.replicas and broker_id in self._by_broker:
                    stop = {name: change.after.leader_epoch}
                    self._by_broker[broker_id].stop_replicas(stop, delete=True)
