"""Who gets the memory of large requests, and in which order."""

from dataclasses import dataclass, field

from ottla.network.memory_budget import MemoryBudget

LIMIT = 1000


@dataclass(eq=False)
class Client:
    """A connection that asks for memory."""

    owner: str
    budget: MemoryBudget
    got: list[str] = field(default_factory=list)
    large_received: int = 0

    def ask(self, size: int) -> bool:
        return self.budget.take(self, size)

    def on_memory(self) -> None:
        self.got.append("memory")

    def on_slow(self) -> None:
        self.got.append("slow")


def clients(budget: MemoryBudget, *owners: str) -> list[Client]:
    return [Client(owner, budget) for owner in owners]


def test_one_owner_gets_a_quarter_and_others_find_room() -> None:
    """Ten of its connections announce all of the budget; a second client is served at once."""
    budget = MemoryBudget(LIMIT)
    hostile = clients(budget, *["mallory"] * 10)
    assert [each.ask(100) for each in hostile] == [True] * 2 + [False] * 8
    (alice,) = clients(budget, "alice")
    assert alice.ask(100)
    assert budget.held_bytes == 300


def test_an_owner_that_holds_nothing_gets_more_than_its_share() -> None:
    """A large request must be served at some time, as one larger than the budget must."""
    budget = MemoryBudget(LIMIT)
    alice, bob = clients(budget, "alice", "bob")
    assert alice.ask(900)
    budget.give(alice)
    assert bob.ask(5000)
    assert not alice.ask(1)
    budget.give(bob)
    assert alice.got == ["memory"]


def test_owners_that_wait_take_turns() -> None:
    """One with many requests in line does not keep another from its first."""
    budget = MemoryBudget(LIMIT)
    holder, *line = clients(budget, "x", "mallory", "mallory", "mallory", "alice")
    assert holder.ask(1000)
    assert not any(each.ask(600) for each in line)
    budget.give(holder)
    assert [each.got for each in line] == [["memory"], [], [], []]
    budget.give(line[0])
    assert [each.got for each in line] == [["memory"], [], [], ["memory"]]
    budget.give(line[3])
    assert [each.got for each in line] == [["memory"], ["memory"], [], ["memory"]]


def test_a_small_request_does_not_overtake_a_large_one_that_lacks_only_room() -> None:
    """Or the large one would wait for ever."""
    budget = MemoryBudget(LIMIT)
    holder, large, small = clients(budget, "x", "alice", "bob")
    assert holder.ask(500)
    assert not large.ask(600)
    assert not small.ask(100)
    budget.give(holder)
    assert (large.got, small.got) == (["memory"], ["memory"])


def test_an_owner_that_has_its_share_does_not_hold_others_up() -> None:
    """What waits for the owner's own requests lets others by."""
    budget = MemoryBudget(LIMIT)
    first, second, other = clients(budget, "mallory", "mallory", "alice")
    assert first.ask(200)
    assert not second.ask(100)
    assert other.ask(700)
    budget.give(first)
    assert second.got == ["memory"]
    assert budget.held_bytes == 800


def test_only_requests_that_were_there_at_the_look_can_be_slow() -> None:
    """A request that began since is looked at next time."""
    budget = MemoryBudget(LIMIT)
    old, waits = clients(budget, "a", "b")
    assert old.ask(1000)
    assert not waits.ask(900)
    assert budget.look()
    assert not budget.look()
    budget.give(old)
    assert not old.ask(1000)
    assert budget.slow_holders() == []
    assert budget.look()
    assert budget.slow_holders() == [waits]
    waits.large_received = 89
    budget.look()
    waits.large_received = 179
    assert budget.slow_holders() == []
