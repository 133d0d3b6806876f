"""A mistake of ours in an answer: the client must not wait for ever."""

import asyncio

import pytest

from ottla.wire.api import ApiKey
from ottla.wire.messages.reassignments import ElectLeadersRequest, ElectLeadersResponse
from tests.integration.broker.inprocess import run


def test_an_answer_that_cannot_be_encoded_ends_the_connection(caplog):
    """Version 0 of ElectLeaders has no error above the partitions; the log says what happened."""

    async def scenario(caller):
        async def handle(_request, _body):
            return ElectLeadersResponse(error_code=41)

        table = caller.broker.serving.listeners.open[0].service._dispatcher.table
        key = ApiKey.ELECT_LEADERS
        table[key] = table[key]._replace(handle=handle)
        with pytest.raises(asyncio.IncompleteReadError):
            await asyncio.wait_for(caller.call(ElectLeadersRequest(), 0), 30)

    run(scenario)
    assert "an answer cannot be sent" in caplog.text
