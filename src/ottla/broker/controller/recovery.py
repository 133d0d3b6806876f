"""Elects where all who held a partition's records lost power at once, and are back (S17).

Nobody is in sync or eligible then, but all that was committed is in one of those that were last.
Each is asked how far its log is; nothing is decided before all have answered in the same term.
"""

import asyncio
import logging
from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.office import Office
from ottla.controller.change import Change, Rules
from ottla.controller.election import LogReach, may_recover, recover
from ottla.metadata.image import BrokerImage, PartitionImage
from ottla.wire.messages.log_ends import LogEndsResponse

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0
_PATIENCE_S = 5.0


class Recovery:
    """Asks beside the queue of jobs, so that a silent broker holds nothing else up."""

    def __init__(self, office: Office) -> None:
        self._office = office
        # For each replica its broker's epoch, the term it answered in, and what it said.
        self._reaches: dict[tuple[TopicPartition, BrokerId], tuple[int, int, LogReach]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._pause_s = _FIRST_PAUSE_S
        office.on_come.append(self.soon)
        office.on_stop.append(self.stop)

    def soon(self) -> None:
        """Have it looked whether some partition can be recovered."""
        self._office.jobs.once("recoveries", self.look)

    def stop(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
        if self._again is not None:
            self._again.cancel()

    async def look(self) -> None:
        """Elect where all have answered, and ask who has not. A job of the office."""
        if self._asking is not None and not self._asking.done():
            return
        waiting = self._recoverable()
        if waiting and self._reaches:
            await self._office.decide(waiting, self._decide)
            waiting = self._recoverable()
        self._reaches = {key: told for key, told in self._reaches.items() if key[0] in waiting}
        missing = self._missing(waiting)
        if missing:
            self._asking = asyncio.get_running_loop().create_task(self._ask(missing))
        else:
            self._pause_s = _FIRST_PAUSE_S

    def _recoverable(self) -> dict[TopicPartition, PartitionImage]:
        context = self._office.context
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
        context = self._office.context
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
        """What a replica said, if it said it in this life and in this term."""
        told = self._reaches.get((name, broker))
        live = self._office.context.brokers.get(broker)
        if told is None or live is None or told[:2] != (live.epoch, partition.leader_epoch):
            return None
        return told[2]

    def _missing(
        self, waiting: dict[TopicPartition, PartitionImage]
    ) -> dict[BrokerId, list[TopicPartition]]:
        """Which partitions each broker is still to be asked about."""
        missing: dict[BrokerId, list[TopicPartition]] = {}
        for name, partition in waiting.items():
            for broker in partition.last_known_elr:
                if self._reach(name, partition, broker) is None:
                    missing.setdefault(broker, []).append(name)
        return missing

    async def _ask(self, missing: dict[BrokerId, list[TopicPartition]]) -> None:
        brokers = self._office.context.brokers
        asked = [
            self._ask_one(brokers[broker], names)
            for broker, names in missing.items()
            if broker in brokers
        ]
        all_told = all(await asyncio.gather(*asked))
        if all_told:
            self._pause_s = 0.0
        loop = asyncio.get_running_loop()
        self._asking = None
        # Who comes back hears of its term a little later than this office hears of it.
        self._again = loop.call_later(self._pause_s, self.soon)
        self._pause_s = min(max(self._pause_s * 2, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)

    async def _ask_one(self, broker: BrokerImage, names: Iterable[TopicPartition]) -> bool:
        """Note what one broker says of its logs; whether it knew all of them."""
        office = self._office
        request = office.letterhead.log_ends(office.context, broker, names)
        terms = {
            TopicPartition(topic.topic_name, partition.partition_index): partition.leader_epoch
            for topic in request.topics
            for partition in topic.partitions
        }
        try:
            async with asyncio.timeout(_PATIENCE_S):
                response: LogEndsResponse = await office.deliver(broker, request)
        except TimeoutError:
            _log.warning("broker %d does not say how far its logs are", broker.id)
            return False
        except OttlaError as error:
            _log.debug("asking broker %d how far its logs are: %s", broker.id, error.message)
            return False
        if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            office.deposed()
        for topic in response.topics:
            for told in topic.partitions:
                name = TopicPartition(topic.topic_name, told.partition_index)
                if told.error_code == ErrorCode.NONE and name in terms:
                    reach = LogReach(told.latest_epoch, told.end_offset, told.start_offset)
                    self._reaches[name, broker.id] = broker.epoch, terms.pop(name), reach
        return not terms
