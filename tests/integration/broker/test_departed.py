"""Laws of the brokers that are named for a while after they left."""

from ottla.base.ids import BrokerId
from ottla.broker.cluster.addresses import Departed
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.integration.broker.inprocess import run


def broker(number: int) -> BrokerImage:
    return BrokerImage(
        BrokerId(number), {"PLAINTEXT": Endpoint("h", 9000 + number)}, rack=None, epoch=1
    )


ONE, TWO = broker(1), broker(2)
BOTH = {ONE.id: ONE, TWO.id: TWO}


def test_an_image_without_a_change_names_a_dead_broker_no_longer():
    """Its time counts from the image that lacked it first."""
    departed = Departed()
    departed.on_image(BOTH, 0)
    departed.on_image({ONE.id: ONE}, 1_000)
    departed.on_image({ONE.id: ONE}, 60_000)
    assert departed.named_to("librdkafka", 60_999) == [TWO]
    assert departed.named_to("librdkafka", 61_000) == []


def test_who_came_back_is_not_named_twice():
    """It is among the living then; its next departure counts anew."""
    departed = Departed()
    departed.on_image(BOTH, 0)
    departed.on_image({ONE.id: ONE}, 1_000)
    departed.on_image(BOTH, 2_000)
    assert departed.named_to("librdkafka", 2_000) == []
    departed.on_image({ONE.id: ONE}, 50_000)
    assert departed.named_to("librdkafka", 109_999) == [TWO]


def test_metadata_names_them_where_they_were():
    """To a connection that has said what it is; the living are there as ever."""

    async def scenario(caller):
        alive = dict(caller.broker.image.brokers)
        caller.broker.parts.cluster.departed.on_image({**alive, TWO.id: TWO}, 0)
        caller.broker.parts.cluster.departed.on_image(
            alive, caller.broker.runtime.clock.monotonic_ms()
        )

        async def named():
            answer = await caller.call(MetadataRequest(topics=[]), 12)
            return [(each.node_id, each.port) for each in answer.brokers]

        assert await named() == [(1, caller.broker.port)]
        request = ApiVersionsRequest(
            client_software_name="confluent-kafka-python", client_software_version="2.16.1"
        )
        await caller.call(request, 3)
        assert await named() == [(1, caller.broker.port), (2, 9002)]

    run(scenario)
