"""ElectLeaders: preferred leaders, unclean ones, and what stands in the way."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.handlers.reassignments import ElectLeaders
from ottla.wire.messages.reassignments import ElectLeadersRequest, TopicPartitions

from .controller_world import play
from .replica_world import ask

PREFERRED, UNCLEAN = 0, 1


def request(kind, *topics):
    named = [TopicPartitions(topic=topic, partitions=[0]) for topic in topics]
    return ElectLeadersRequest(election_type=kind, topic_partitions=named or None)


def outcomes(response):
    return {
        (topic.topic, result.partition_id): ErrorCode(result.error_code)
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def test_the_preferred_replica_leads_where_it_may():
    """One that leads already, one out of the ISR and an unknown partition say so."""

    async def scenario(world):
        await world.topic("away", 1, leader=3, replicas=[2, 3], isr=[2, 3])
        await world.topic("home", 2, leader=2, replicas=[2, 3], isr=[2, 3])
        await world.topic("late", 3, leader=3, replicas=[2, 3], isr=[3])
        await world.begin()
        handler = ElectLeaders(world.controller)
        response = await ask(handler, request(PREFERRED, "away", "home", "late", "none"))
        assert outcomes(response) == {
            ("away", 0): ErrorCode.NONE,
            ("home", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("late", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert (await world.state("away")).leader == 2
        assert (await world.state("late")).leader == 3

    play(scenario)


def test_of_all_partitions_only_those_that_needed_an_election_are_told():
    """The rest is left out of the answer."""

    async def scenario(world):
        await world.topic("away", 1, leader=3, replicas=[2, 3], isr=[2, 3])
        await world.topic("home", 2, leader=2, replicas=[2, 3], isr=[2, 3])
        await world.begin()
        response = await ask(ElectLeaders(world.controller), request(PREFERRED))
        assert outcomes(response) == {("away", 0): ErrorCode.NONE}

    play(scenario)


def test_a_replica_out_of_the_isr_is_elected_if_that_is_asked_for():
    """The only broker in sync, 9, is not there; without the request nothing leads."""

    async def scenario(world):
        await world.topic("lost", 1, leader=9, replicas=[9, 2], isr=[9])
        await world.begin()
        assert (await world.state("lost")).leader == -1
        response = await ask(ElectLeaders(world.controller), request(UNCLEAN, "lost"))
        assert outcomes(response) == {("lost", 0): ErrorCode.NONE}
        state = await world.state("lost")
        assert (state.leader, state.isr) == (2, (2,))

    play(scenario)


@pytest.mark.parametrize(
    ("kind", "begun", "code"),
    [(2, True, ErrorCode.INVALID_REQUEST), (PREFERRED, False, ErrorCode.NOT_CONTROLLER)],
)
def test_no_such_election_and_no_controller_are_errors(kind, begun, code):
    """The error is on every partition named, too: version 0 has no other place for it."""

    async def scenario(world):
        if begun:
            await world.begin()
        with pytest.raises(OttlaError) as caught:
            await ask(ElectLeaders(world.controller), request(kind, "t"))
        assert caught.value.code == code
        answer = ElectLeaders.on_error(request(kind, "t"), code, "why", 2)
        assert (answer.error_code, outcomes(answer)) == (code, {("t", 0): code})
        answer = ElectLeaders.on_error(request(kind, "t"), code, "why", 0)
        assert (answer.error_code, outcomes(answer)) == (0, {("t", 0): code})

    play(scenario)
