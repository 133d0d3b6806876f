"""Brokers asked side by side, each with patience."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.client.admin.calls import Calls
from ottla.client.common.errors import (
    BrokerRefused,
    ConnectionFailed,
    RequestTimedOut,
    UnsupportedByBroker,
    refused,
)
from ottla.client.connection.cluster import Cluster, ClusterOptions


def each_in_time(*ids: int, patience_s: float = 0) -> list[int]:
    """Broker 2 does not answer, 3 is down, 4 is slow, 5 is no Ottla, 6 refuses; others answer."""

    async def ask(broker_id: int) -> int:
        match broker_id:
            case 2:
                await asyncio.Event().wait()
            case 3:
                raise ConnectionFailed("it is down")
            case 4:
                raise RequestTimedOut("it is slow")
            case 5:
                raise UnsupportedByBroker("it is no Ottla")
            case 6:
                raise refused(ErrorCode.KAFKA_STORAGE_ERROR, "read its disk")
        return 10 * broker_id

    async def main() -> list[int]:
        calls = Calls(Cluster("localhost:1", ClusterOptions()))
        return await calls.each_in_time(ids, ask, patience_s)

    return asyncio.run(main())


def test_brokers_that_do_not_answer_in_time_are_left_out() -> None:
    """Nor those that are down or do not know the request; the others keep their order."""
    assert each_in_time(7, 2, 3, 1, 4, 5) == [70, 10]
    assert each_in_time(2) == []


def test_a_refusal_is_no_silence() -> None:
    """It has a cause that a person should know."""
    with pytest.raises(BrokerRefused, match="read its disk"):
        each_in_time(1, 6)
