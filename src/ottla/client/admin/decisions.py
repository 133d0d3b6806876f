"""Why partitions are as they are: the decision records of Ottla's brokers."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import Names, name_list
from ottla.client.common.call_check import checks_calls
from ottla.client.common.errors import (
    BrokerRefused,
    check,
)
from ottla.wire.messages.describe_decisions import (
    DescribeDecisionsRequest,
    DescribeDecisionsResponse,
)


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision of a broker: why, on what evidence, and by which setting."""

    at_ms: int
    broker_id: int
    kind: str
    leader_epoch: int
    cause: str
    evidence: str
    setting: str | None


@dataclass(frozen=True, slots=True)
class Story:
    """Records of all brokers in the order of their clocks; `silent` says which did not answer."""

    records: tuple[DecisionRecord, ...]
    silent: dict[int, OttlaError]


@checks_calls
class Decisions:
    """`admin.decisions`: why partitions are as they are."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def about(self, partition: TopicPartition, kinds: Names | None = None) -> Story:
        """What the live brokers remember of `partition` (`kinds` None: all of it).

        Raises UnknownTopic where there is no such partition, UnsupportedByBroker where the
        cluster is no Ottla.
        """
        await self._calls.cluster.partition(partition)
        request = DescribeDecisionsRequest(
            topic=partition.topic,
            partition=partition.partition,
            kinds=None if kinds is None else name_list(kinds),
        )
        records: list[DecisionRecord] = []
        silent: dict[int, OttlaError] = {}
        async for broker_id, answer in self._calls.ask_each_ottla(
            request, DescribeDecisionsResponse, "keeps no decision records", silent
        ):
            try:
                check(
                    answer.error_code, f"describe decisions about {partition}", answer.error_message
                )
            except BrokerRefused as error:
                # Its metadata may lag: it may not know the topic yet.
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                silent[broker_id] = error
                continue
            records += [
                DecisionRecord(
                    told.at_ms,
                    told.broker_id,
                    told.kind,
                    told.leader_epoch,
                    told.cause,
                    told.evidence,
                    told.setting,
                )
                for told in answer.decisions
            ]
        records.sort(key=lambda record: (record.at_ms, record.leader_epoch))
        return Story(tuple(records), silent)
