"""The rebalances that Ottla's brokers recorded, with their reasons."""

from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.client.admin.calls import Calls
from ottla.client.common.call_check import checks_calls
from ottla.client.common.errors import check
from ottla.wire.messages.decisions import (
    DescribedRebalance,
    DescribeRebalancesRequest,
    DescribeRebalancesResponse,
)


@dataclass(frozen=True, slots=True)
class RebalanceStory:
    """(broker id, rebalance) in order of their start.

    `silent` lists the brokers that did not answer.
    """

    rebalances: tuple[tuple[int, DescribedRebalance], ...]
    silent: dict[int, OttlaError]


@checks_calls
class Rebalances:
    """`admin.rebalances`: explains why groups rebalanced."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def of(self, group_id: str) -> RebalanceStory:
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
            found += [(broker_id, told) for told in answer.rebalances]
        found.sort(key=lambda each: (each[1].began_ms, each[1].epoch))
        return RebalanceStory(tuple(found), silent)
