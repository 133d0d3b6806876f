"""Elects leaders for partitions whose replicas all lost power at once (S17).

The ISR and the ELR are empty then, but one of the brokers in the last known ELR has every committed
record. The controller asks each of them for its log end offset, and elects a leader after all have
answered in the same leader epoch.
"""

import asyncio
import logging
from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.active import ActiveController
from ottla.controller.election import Change, LogReach, Rules, may_recover, recover
from ottla.metadata.image import BrokerImage, PartitionImage
from ottla.wire.messages.offset_ledger import LogEndsResponse

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0
_PATIENCE_S = 5.0


class LeaderRecovery:
    """Collects log end offsets and elects leaders from them.

    Brokers are asked outside the queue of jobs, so that a silent broker delays nothing else.
    """

    def __init__(self, active: ActiveController) -> None:
        self._active = active
        # For each replica: its broker epoch, the leader epoch in which it answered, and its log
        # end.
        self._reaches: dict[tuple[TopicPartition, BrokerId], tuple[int, int, LogReach]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._pause_s = _FIRST_PAUSE_S
        active.on_come.append(self.soon)
        active.on_stop.append(self.stop)

    def soon(self) -> None:
        """Queue a check of whether a partition can be recovered."""
        self._active.jobs.once("recoveries", self.look)

    def stop(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()
        if self._again is not None:
            self._again.cancel()

    async def look(self) -> None:
        """Elect leaders of partitions whose replicas have all answered; ask the missing brokers.

        This is a job of the queue.
        """
        if self._asking is not None and not self._asking.done():
            return
        waiting = self._recoverable()
        if waiting and self._reaches:
            await self._active.changes.decide(waiting, self._decide)
            waiting = self._recoverable()
        self._reaches = {key: known for key, known in self._reaches.items() if key[0] in waiting}
        missing = self._missing(waiting)
        if missing:
            self._asking = asyncio.get_running_loop().create_task(self._ask(missing))
        else:
            self._pause_s = _FIRST_PAUSE_S

    def _recoverable(self) -> dict[TopicPartition, PartitionImage]:
        context = self._active.context
        live = context.live
        known = {name: context.partition(name) for name in context.names()}
        return {
            name: partition
            for name, partition in known.items()
            if partition is not None and may_recover(partition, context.live_for(name, live))
        }

    def _decide(
        self, name: TopicPartition, partition: PartitionImage, _rules: Rules
    ) -> Change | None:
        context = self._active.context
        live = context.live_for(name, context.live)
        reaches = {
            broker: reach
            for broker in partition.last_known_elr
            if (reach := self._reach(name, partition, broker)) is not None
        }
        return recover(partition, reaches, live, cause="all that were in sync or eligible are back")

    def _reach(
        self, name: TopicPartition, partition: PartitionImage, broker: BrokerId
    ) -> LogReach | None:
        """Return a replica's answer if its broker epoch and leader epoch are current, else None."""
        known = self._reaches.get((name, broker))
        live = self._active.context.brokers.get(broker)
        if known is None or live is None or known[:2] != (live.epoch, partition.leader_epoch):
            return None
        return known[2]

    def _missing(
        self, waiting: dict[TopicPartition, PartitionImage]
    ) -> dict[BrokerId, list[TopicPartition]]:
        """Return, for each broker, the partitions for which its log end offset is missing."""
        missing: dict[BrokerId, list[TopicPartition]] = {}
        for name, partition in waiting.items():
            for broker in partition.last_known_elr:
                if self._reach(name, partition, broker) is None:
                    missing.setdefault(broker, []).append(name)
        return missing

    async def _ask(self, missing: dict[BrokerId, list[TopicPartition]]) -> None:
        brokers = self._active.context.brokers
        asked = [
            self._ask_one(brokers[broker], names)
            for broker, names in missing.items()
            if broker in brokers
        ]
        all_answered = all(await asyncio.gather(*asked))
        if all_answered:
            self._pause_s = 0.0
        loop = asyncio.get_running_loop()
        self._asking = None
        # A returning broker learns the leader epochs a little later than the controller.
        self._again = loop.call_later(self._pause_s, self.soon)
        self._pause_s = min(max(self._pause_s * 2, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)

    async def _ask_one(self, broker: BrokerImage, names: Iterable[TopicPartition]) -> bool:
        """Ask a broker for its log end offsets; return whether it answered for all partitions."""
        active = self._active
        request = active.messages.log_ends(active.context, broker, names)
        terms = {
            TopicPartition(topic.topic_name, partition.partition_index): partition.leader_epoch
            for topic in request.topics
            for partition in topic.partitions
        }
        try:
            async with asyncio.timeout(_PATIENCE_S):
                response: LogEndsResponse = await active.deliver(broker, request)
        except TimeoutError:
            _log.warning("broker %d does not answer a request for the ends of its logs", broker.id)
            return False
        except OttlaError as error:
            _log.debug("asking broker %d where its logs end: %s", broker.id, error.message)
            return False
        if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            active.reports.deposed()
        for topic in response.topics:
            for found in topic.partitions:
                name = TopicPartition(topic.topic_name, found.partition_index)
                if found.error_code == ErrorCode.NONE and name in terms:
                    reach = LogReach(found.latest_epoch, found.end_offset, found.start_offset)
                    self._reaches[name, broker.id] = broker.epoch, terms.pop(name), reach
        return not terms
