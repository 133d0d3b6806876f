"""What Ottla's brokers recorded: decisions about partitions, and rebalances of groups."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import Names, checks_calls, name_list
from ottla.client.common.errors import (
    BrokerRefused,
    check,
)
from ottla.client.common.offset_account import filled
from ottla.wire.messages.decisions import (
    DescribeDecisionsRequest,
    DescribeDecisionsResponse,
    DescribedRebalance,
    DescribeRebalancesRequest,
    DescribeRebalancesResponse,
)


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision of a broker, with its reason, its evidence and the setting involved."""

    at_ms: int
    broker_id: int
    kind: str
    leader_epoch: int
    cause: str
    evidence: str
    setting: str | None


@dataclass(frozen=True, slots=True)
class DecisionHistory:
    """The decision records of all brokers, sorted by time.

    `silent` lists the brokers that did not answer.
    """

    records: tuple[DecisionRecord, ...]
    silent: dict[int, OttlaError]


@checks_calls()
class Decisions:
    """`admin.decisions`: explains the state of partitions."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def describe(
        self, partition: TopicPartition, kinds: Names | None = None
    ) -> DecisionHistory:
        """Return the decision records of live brokers about `partition`.

        `kinds` None means all kinds.

        Raises UnknownTopic if there is no such partition, UnsupportedByBroker if the brokers are
        not Ottla's.
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
                # The broker's metadata may lag, so that it does not know the topic yet.
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                silent[broker_id] = error
                continue
            records += [filled(DecisionRecord, one) for one in answer.decisions]
        records.sort(key=lambda record: (record.at_ms, record.leader_epoch))
        return DecisionHistory(tuple(records), silent)


@dataclass(frozen=True, slots=True)
class RebalanceHistory:
    """The rebalances of a group with the ids of their brokers, sorted by start time.

    `silent` lists the brokers that did not answer.
    """

    rebalances: tuple[tuple[int, DescribedRebalance], ...]
    silent: dict[int, OttlaError]


@checks_calls()
class Rebalances:
    """`admin.rebalances`: explains why groups rebalanced."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def describe(self, group_id: str) -> RebalanceHistory:
        """Return the rebalances of a group that live brokers coordinated and still remember.

        Raises UnsupportedByBroker if the brokers are not Ottla's.
        """
        request = DescribeRebalancesRequest(group_id=group_id)
        found: list[tuple[int, DescribedRebalance]] = []
        silent: dict[int, OttlaError] = {}
        async for broker_id, answer in self._calls.ask_each_ottla(
            request, DescribeRebalancesResponse, "records no rebalances", silent
        ):
            check(
                answer.error_code,
                f"describe rebalances of group {group_id!r}",
                answer.error_message,
            )
            found += [(broker_id, one) for one in answer.rebalances]
        found.sort(key=lambda each: (each[1].began_ms, each[1].epoch))
        return RebalanceHistory(tuple(found), silent)
