"""Patterns of consumer groups find what a member's client may see, and nothing else."""

from ottla.group.values.topics import NOTHING
from tests.unit.group.consumer_driver import Cluster, Member, World, settle
from tests.unit.group.test_consumer_groups import all_of


def _pair(world: World, first: set[str], second: set[str]) -> tuple[Cluster, Member, Member]:
    cluster = Cluster(world)
    a, b = (Member(cluster, name, regex=".*") for name in "ab")
    a.sight, b.sight = first.__contains__, second.__contains__
    return cluster, a, b


def test_a_pattern_finds_what_the_client_may_see() -> None:
    """Topics that are made later are judged alike; names are left to the check of the request."""
    world = World(orders=1, secret=1)
    a = Member(Cluster(world), "a", regex=".*")
    a.sight = {"orders", "returns"}.__contains__
    settle(a)
    assert a.owned == all_of(world, "orders")
    world.grow("returns", 2)
    world.grow("secrets", 2)
    settle(a)
    assert a.owned == all_of(world, "orders", "returns")


def test_each_member_reads_what_it_may_see_itself() -> None:
    """What one may see is not given to another of the same pattern."""
    world = World(orders=2, secret=2)
    _, a, b = _pair(world, {"orders"}, {"orders", "secret"})
    settle(a, b)
    assert a.owned <= all_of(world, "orders")
    assert a.owned | b.owned == all_of(world, "orders", "secret")


def test_other_rules_are_followed_with_the_next_heartbeat() -> None:
    """A topic that is hidden is taken away, one that is shown is given, and nothing else moves."""
    world = World(orders=1, secret=1)
    _, a, b = _pair(world, {"orders", "secret"}, {"secret"})
    settle(a, b)
    a.sight = {"orders"}.__contains__
    settle(a, b)
    assert (a.owned, b.owned) == (all_of(world, "orders"), all_of(world, "secret"))
    b.sight = set[str]().__contains__
    settle(a, b)
    assert (a.owned, b.owned) == (all_of(world, "orders"), NOTHING)
    a.sight = {"orders", "secret"}.__contains__
    settle(a, b)
    assert a.owned == all_of(world, "orders", "secret")


def test_after_a_fail_over_nothing_moves() -> None:
    """A coordinator that has not heard a member leaves it what it has."""
    world = World(orders=3, secret=2)
    cluster, a, b = _pair(world, {"orders"}, {"orders", "secret"})
    settle(a, b)
    before, written = [(each.epoch, each.owned) for each in (a, b)], len(cluster.log)
    cluster.fail_over()
    settle(b, a)
    assert [(each.epoch, each.owned) for each in (a, b)] == before
    assert len(cluster.log) == written


def test_a_member_that_is_heard_after_a_fail_over_gets_its_part() -> None:
    """A rebalance that came before its heartbeat gave it topics of which it had partitions."""
    world = World(orders=1)
    cluster = Cluster(world)
    a = Member(cluster, "a", regex=".*")
    settle(a)
    cluster.fail_over()
    world.grow("returns", 4)
    c = Member(cluster, "c", ["returns"])
    c.beat()
    assert len(cluster.group.target_of("a")) == 1
    settle(a, c)
    assert a.owned | c.owned == all_of(world, "orders", "returns")
    assert len(a.owned) in (2, 3)
