"""Elections by command (KIP-183, KIP-460): preferred leaders, or any where records may be lost."""

from enum import IntEnum

from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.arguments import Partitions, partition_list
from ottla.client.errors import BrokerRefused, check, refused
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


class ElectionKind(IntEnum):
    """Who is to lead: the first replica if it is in sync, or whoever lives."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectionCalls(Calls):
    """Calls about leaders."""

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Partitions | None = None
    ) -> dict[TopicPartition, BrokerRefused | None]:
        """Hold elections (None: wherever one is needed); per partition None, or why there was none.

        ELECTION_NOT_NEEDED says that it is led as wanted already. An UNCLEAN election may lose
        acknowledged records.
        """
        topics: dict[str, TopicPartitions] = {}
        for topic, index in () if partitions is None else partition_list(partitions):
            topics.setdefault(topic, TopicPartitions(topic=topic)).partitions.append(index)
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=None if partitions is None else list(topics.values()),
            timeout_ms=self.cluster.options.request_timeout_ms,
        )

        async def elect() -> dict[TopicPartition, BrokerRefused | None]:
            controller = await self.cluster.controller()
            answer = await self.cluster.ask(controller, request, ElectLeadersResponse)
            check(answer.error_code, "hold elections")
            found: dict[TopicPartition, BrokerRefused | None] = {}
            for topic in answer.replica_election_results:
                for result in topic.partition_result:
                    name = TopicPartition(topic.topic, result.partition_id)
                    found[name] = (
                        refused(
                            result.error_code, f"elect a leader of {name}", result.error_message
                        )
                        if result.error_code
                        else None
                    )
            return found

        return await self.retried(elect)
