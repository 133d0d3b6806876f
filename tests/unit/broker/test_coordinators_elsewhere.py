"""Requests of this broker to coordinators and leaders that are other brokers, or none."""

import asyncio
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.share.messages import READ
from ottla.share.records import ShareKey
from ottla.transaction.transaction import ProducerIdentity

from .handlers.coordinators_world import TOPIC_IDS, TWO, World, play

KEY = ShareKey("g", TOPIC_IDS["t"], 0)


def verify(world: World, answers: list[Any], name: str) -> None:
    """Note `name` and the answer."""
    world.verifications.verify(
        world.partitions.get("t", 0),
        "x",
        ProducerIdentity(7, 0),
        adds=False,
        on_answer=lambda answer: answers.append((name, answer)),
    )


def test_batches_of_one_transaction_wait_for_one_verification_in_their_order() -> None:
    """A coordinator that cannot be reached fails all of them with NETWORK_EXCEPTION."""

    async def scenario(world: World) -> None:
        await world.create("__transaction_state", leader=TWO)
        answers: list[Any] = []
        verify(world, answers, "first")
        verify(world, answers, "second")
        assert answers == []
        assert world.verifications.is_needed(
            world.partitions.get("t", 0), "x", ProducerIdentity(7, 0), adds=False
        )
        failed = asyncio.Event()
        world.verifications.verify(
            world.partitions.get("t", 0),
            "x",
            ProducerIdentity(7, 0),
            adds=False,
            on_answer=lambda _: failed.set(),
        )
        await failed.wait()
        assert answers == [
            ("first", ErrorCode.NETWORK_EXCEPTION),
            ("second", ErrorCode.NETWORK_EXCEPTION),
        ]

    play(scenario, "t")


def test_without_a_live_coordinator_nothing_is_verified() -> None:
    """No topic yet, or its leader left the cluster: COORDINATOR_NOT_AVAILABLE."""

    async def scenario(world: World) -> None:
        answers: list[Any] = []
        verify(world, answers, "no topic")
        await world.create("__transaction_state", leader=TWO)
        world.lose(TWO)
        verify(world, answers, "no leader")
        assert answers == [
            ("no topic", ErrorCode.COORDINATOR_NOT_AVAILABLE),
            ("no leader", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ]

    play(scenario, "t")


def test_verification_that_is_switched_off_lets_all_batches_pass() -> None:
    """transaction.partition.verification.enable=false: there is a guard without a coordinator."""

    async def scenario(world: World) -> None:
        answers: list[Any] = []
        verify(world, answers, "batch")
        ((_, guard),) = answers
        assert not isinstance(guard, ErrorCode)

    play(scenario, "t", settings={"transaction.partition.verification.enable": "false"})


def test_share_state_elsewhere_fails_with_the_error_of_the_last_attempt() -> None:
    """After `patience_ms`, for each key."""

    async def scenario(world: World) -> None:
        await world.create("__share_group_state", leader=TWO)
        answered = await world.persister.ask_one(READ, KEY, 0, patience_ms=0)
        assert answered.code is ErrorCode.BROKER_NOT_AVAILABLE
        world.lose(TWO)
        answered = await world.persister.ask_one(READ, KEY, 0, patience_ms=0)
        assert answered.code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    play(scenario)


def test_end_offsets_are_those_of_leaders_that_answer() -> None:
    """A partition whose leader does not, and one that does not exist, are left out."""

    async def scenario(world: World) -> None:
        await world.create("elsewhere", leader=TWO)
        world.write("t", b"one", b"two")
        committed = asyncio.Event()
        world.partitions.get("t", 0).on_high_watermark(2, lambda _: committed.set())
        await committed.wait()
        wanted = [TopicPartition(name, 0) for name in ("t", "elsewhere", "missing")]
        assert await world.end_offsets.find(wanted) == {TopicPartition("t", 0): 2}

    play(scenario, "t")
