"""Members that join, crash, leave, commit and come back as zombies, in any order, hold the laws.

A failing seed is its own reproduction: `_walk(seed)`.
"""

import random

import pytest

from ottla.base.errors import ErrorCode
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.group import GroupState
from ottla.group.records.stored import GroupRecord, decode
from ottla.wire.messages.classic_membership import JoinGroupResponse
from tests.unit.group.driver import Driver, subscription

PARTITIONS = 6
SESSION_MS = 10_000
REBALANCE_MS = 15_000
PROTOCOLS = (("range", subscription("t")),)


class Client:
    """A consumer as a well-behaved program would be, until it crashes."""

    def __init__(self, world: "World", name: str, instance: str | None) -> None:
        self.world = world
        self.name = name
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.waits_for: str | None = None
        self.is_syncing = False
        self.members: list[str] = []
        # Partition -> position. Empty until the share is told.
        self.positions: dict[int, int] = {}

    def step(self) -> None:
        """Do the next thing the protocol asks for, if no answer is awaited."""
        if self.waits_for is not None:
            self._take_answer()
        elif self.generation < 0:
            self._join()
        elif self.world.driver.heartbeat(self.member_id, self.generation, self.instance):
            self._after_refusal()
        else:
            self.read_and_commit()

    def read_and_commit(self) -> None:
        if self.generation < 0:
            return  # A commit without a generation is not a member's.
        for partition in self.positions:
            self.positions[partition] += self.world.rng.randrange(3)
            code = self._commit(partition)
            if code is ErrorCode.NONE:
                self.world.check_commit(self, partition)

    def _commit(self, partition: int) -> ErrorCode:
        return self.world.driver.commit(
            self.positions[partition],
            member_id=self.member_id,
            generation=self.generation,
            instance=self.instance,
            partition=partition,
        )

    def _join(self) -> None:
        self.positions = {}
        self.waits_for = self.world.ticket()
        self.is_syncing = False
        self.world.driver.join(
            self.waits_for,
            self.member_id,
            instance=self.instance,
            protocols=PROTOCOLS,
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
        )

    def _take_answer(self) -> None:
        assert self.waits_for is not None
        answer = self.world.driver.answers.pop(self.waits_for, None)
        if answer is None:
            return
        self.waits_for = None
        code = ErrorCode(answer.error_code)
        if self.is_syncing:
            self._take_share(code, answer.assignment)
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif code is not ErrorCode.NONE:
            self._after_refusal(code)
        else:
            self._sync(answer)

    def _sync(self, answer: object) -> None:
        told = self.world.as_joined(answer)
        self.member_id = told.member_id
        self.generation = told.generation_id
        shares: dict[str, bytes] = {}
        if told.leader == told.member_id and not told.skip_assignment:
            ids = [each.member_id for each in told.members]
            for partition in range(PARTITIONS):
                owner = ids[partition % len(ids)]
                shares[owner] = shares.get(owner, b"") + bytes([partition])
        self.waits_for = self.world.ticket()
        self.is_syncing = True
        self.world.driver.sync(
            self.waits_for, self.member_id, self.generation, shares, instance=self.instance
        )

    def _take_share(self, code: ErrorCode, share: bytes) -> None:
        self.is_syncing = False
        if code is not ErrorCode.NONE:
            self._after_refusal(code)
            return
        self.world.check_share(self, share)
        committed = {each: self.world.driver.committed("t", each) for each in share}
        self.positions = {each: max(offset, 0) for each, offset in committed.items()}

    def _after_refusal(self, code: ErrorCode | None = None) -> None:
        """Join again; with a new id where the old one is not known any more."""
        if code is None:
            code = self.world.driver.heartbeat(self.member_id, self.generation, self.instance)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
            self.positions = {}
        self.generation = -1


class World:
    """The group, its clients, and what must hold."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.driver = Driver(
            initial_rebalance_delay_ms=self.rng.choice([0, 3_000]),
            max_size=self.rng.choice([4, 99]),
        )
        self.clients: list[Client] = []
        self.zombies: list[Client] = []
        self.tickets = 0
        self.highest: dict[int, int] = {}
        # What was told of each generation: partition -> who has it.
        self.owners: dict[int, dict[int, str]] = {}

    def ticket(self) -> str:
        self.tickets += 1
        return str(self.tickets)

    def as_joined(self, answer: object) -> JoinGroupResponse:
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def check_share(self, client: Client, share: bytes) -> None:
        """Each partition belongs to one member of a generation (P11)."""
        owners = self.owners.setdefault(client.generation, {})
        who = client.instance or client.member_id
        for partition in share:
            assert owners.setdefault(partition, who) == who

    def check_commit(self, client: Client, partition: int) -> None:
        """Only a member of the present generation moves an offset, and it moves forward (S28)."""
        group = self.driver.group()
        assert client.member_id in group.members
        assert client.generation == group.generation
        committed = self.driver.committed("t", partition)
        assert committed >= self.highest.get(partition, 0)
        self.highest[partition] = committed

    def step(self) -> None:
        action = self.rng.random()
        if action < 0.04 and len(self.clients) < 6:
            number = self.rng.randrange(3)
            instance = self.rng.choice([None, None, f"i{number}"])
            self.clients.append(Client(self, self.ticket(), instance))
        elif action < 0.055 and self.clients:
            # It stops without a word, and may come back to life when everybody has gone on.
            crashed = self.clients.pop(self.rng.randrange(len(self.clients)))
            self.zombies.append(crashed)
        elif action < 0.07 and self.clients:
            leaver = self.clients.pop(self.rng.randrange(len(self.clients)))
            self.driver.leave((leaver.member_id, leaver.instance))
        elif action < 0.12 and self.zombies:
            self.rng.choice(self.zombies).read_and_commit()
        elif action < 0.13:
            self.restart()
        elif action < 0.25:
            self.driver.advance(self.rng.choice([100, 1_000, 4_000]))
        elif self.clients:
            self.rng.choice(self.clients).step()

    def restart(self) -> None:
        """The coordinator is gone; parked requests end with an error, as the shell sees to."""
        before = self.driver.durable()
        self.driver.restart()
        assert self.driver.durable() == before
        for client in self.clients + self.zombies:
            if client.waits_for is not None and client.waits_for not in self.driver.answers:
                client.waits_for = None
                client.generation = -1

    def check(self) -> None:
        """What holds at all times."""
        for group in self.driver.coordinator.registry.groups.values():
            assert set(group.static_members.values()) <= set(group.members)
            assert (group.leader in group.members) == bool(group.members)
            if group.state is GroupState.EMPTY:
                assert not group.members
            if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                assert group.members
                assert all(each.joining is None for each in group.members.values())
            if group.state is GroupState.STABLE:
                assert all(each.syncing is None for each in group.members.values())
                assert group.stored is not None
                assert {each.member_id for each in group.stored.members} == set(group.members)
                assert group.stored.generation == group.generation


def _generations(driver: Driver) -> list[int]:
    records = [decode(*entry) for entry in driver.log]
    return [
        record.group.generation
        for record in records
        if isinstance(record, GroupRecord) and record.group is not None
    ]


def _walk(seed: int, steps: int = 400) -> World:
    world = World(seed)
    for _ in range(steps):
        world.step()
        world.check()
    return world


@pytest.mark.parametrize("seed", range(60))
def test_laws_hold_in_any_order(seed: int) -> None:
    """One owner per partition, no offset goes back, generations rise, the log is the state."""
    world = _walk(seed)
    generations = _generations(world.driver)
    assert generations == sorted(generations)
    replayed = Driver()
    replayed.log = world.driver.log
    replayed.coordinator = GroupCoordinator(replayed.settings)
    replayed.restart()
    assert replayed.durable() == world.driver.durable()


def test_group_left_in_peace_becomes_stable() -> None:
    """Whatever happened before: with nobody coming or going every partition gets its reader."""
    for seed in range(20):
        world = _walk(seed, 200)
        while len(world.clients) < 2:
            world.clients.append(Client(world, world.ticket(), None))
        for _ in range(60):
            for client in world.clients:
                client.step()
            world.driver.advance(1_000)
        taken = [each for client in world.clients for each in client.positions]
        instances = [client.instance for client in world.clients if client.instance]
        if (
            len(instances) == len(set(instances))
            and len(world.clients) <= world.driver.settings.max_size
        ):
            assert sorted(taken) == [0, 1, 2, 3, 4, 5], seed


def test_walk_reaches_what_it_is_for() -> None:
    """Rebalances, commits and restarts do happen in it."""
    worlds = [_walk(seed) for seed in range(10)]
    assert max(max(_generations(world.driver), default=0) for world in worlds) >= 5
    assert sum(len(world.highest) for world in worlds) >= 30
