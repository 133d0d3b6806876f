"""UnregisterBroker: forgets a broker that is gone, and no other."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.registration import known_brokers
from ottla.broker.handlers.cluster import UnregisterBroker
from ottla.wire.messages.cluster import UnregisterBrokerRequest

from .controller_world import play
from .replica_world import ask


def test_a_broker_that_is_gone_is_forgotten():
    """It is known again when it registers."""

    async def scenario(world):
        await (await world.broker(4)).close()
        assert set(await known_brokers(world.store)) == {1, 2, 3, 4}
        handler = UnregisterBroker(world.store)
        assert (await ask(handler, UnregisterBrokerRequest(broker_id=4))).error_code == 0
        assert set(await known_brokers(world.store)) == {1, 2, 3}
        await world.broker(4)
        assert set(await known_brokers(world.store)) == {1, 2, 3, 4}

    play(scenario)


@pytest.mark.parametrize(
    ("broker_id", "code"),
    [(3, ErrorCode.INVALID_REQUEST), (9, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_a_broker_that_lives_or_is_unknown_is_refused(broker_id, code):
    """Nothing changes."""

    async def scenario(world):
        handler = UnregisterBroker(world.store)
        with pytest.raises(OttlaError) as caught:
            await ask(handler, UnregisterBrokerRequest(broker_id=broker_id))
        assert caught.value.code == code
        assert set(await known_brokers(world.store)) == {1, 2, 3}

    play(scenario)
