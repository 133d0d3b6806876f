"""FindCoordinator, without a socket."""

from ottla.broker.handlers.find_coordinator import FindCoordinator
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

from .coordinators_world import TWO, World, code, play

GROUP, TRANSACTION, SHARE = 0, 1, 2


def handler(world: World) -> FindCoordinator:
    return FindCoordinator(
        world.view,
        world.groups,
        world.transactions,
        world.share_states,
        world.topics,
        world.peers,
    )


def test_each_kind_of_key_has_a_coordinator_whose_topic_is_created() -> None:
    """Groups, transactional ids, and share partitions in version 6."""

    async def scenario(world: World) -> None:
        keys = {GROUP: "g", TRANSACTION: "x", SHARE: "g:AAAAAAAAAAAAAAAAAAAABA:0"}
        for key_type, key in keys.items():
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            (found,) = (await world.call(handler(world), request, 6)).coordinators
            assert (found.key, found.error_code) == (key, 0)
            assert (found.node_id, found.host, found.port) == (1, "host1", 9092)
        assert list(world.view.image.topics) == [
            "__consumer_offsets",
            "__transaction_state",
            "__share_group_state",
        ]

    play(scenario)


def test_a_coordinator_without_a_live_leader_is_not_available() -> None:
    """The error stands above all in versions with one key, and names the partition."""

    async def scenario(world: World) -> None:
        await world.create("__consumer_offsets", leader=TWO)
        world.lose(TWO)
        answer = await world.call(handler(world), FindCoordinatorRequest(key="g"), 3)
        assert (code(answer.error_code), answer.node_id) == ("COORDINATOR_NOT_AVAILABLE", -1)
        assert answer.error_message == (
            "__consumer_offsets-0 has no leader at the moment; try again"
        )

    play(scenario)


def test_a_key_of_the_wrong_type_or_form_is_an_invalid_request() -> None:
    """No topic is created for it."""

    async def scenario(world: World) -> None:
        for version, key_type in ((5, SHARE), (6, SHARE), (6, 3)):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"])
            (found,) = (await world.call(handler(world), request, version)).coordinators
            assert (found.key, code(found.error_code)) == ("g", "INVALID_REQUEST")
        assert dict(world.view.image.topics) == {}

    play(scenario)
