"""How many connections, and how fast."""

import pytest

from ottla.metadata.quota_entity import DEFAULT, QuotaEntity
from ottla.quota.client_quotas import ClientQuotas, Windows
from ottla.quota.connections import (
    WELCOME,
    ConnectionQuotas,
    ConnectionRules,
    ConnectionVerdict,
    Room,
    parse_overrides,
)
from ottla.quota.keys import QuotaKey
from ottla.quota.table import QuotaTable


def quotas(rules: ConnectionRules, address_rate: float | None = None) -> ConnectionQuotas:
    addresses = ClientQuotas(Windows(), Windows())
    if address_rate is not None:
        limits = {QuotaKey.CONNECTION: address_rate}
        addresses.table = QuotaTable({QuotaEntity(ip=DEFAULT): limits})
    return ConnectionQuotas(rules, addresses, Windows())


def test_without_rules_everybody_is_welcome() -> None:
    """The defaults limit nothing."""
    free = quotas(ConnectionRules())

    assert [free.open("L", "10.0.0.1", 0) for _ in range(1000)] == [WELCOME] * 1000


def test_a_broker_has_so_many_connections_over_all_its_listeners() -> None:
    """One too many is refused; when one leaves there is room again."""
    small = quotas(ConnectionRules(Room(connections_max=2)))
    assert small.open("A", "10.0.0.1", 0) == small.open("B", "10.0.0.2", 0) == WELCOME
    refused = small.open("A", "10.0.0.3", 0)
    assert refused == ConnectionVerdict("there are already max.connections (2) of them")
    small.close("A", "10.0.0.3")
    small.close("B", "10.0.0.2")
    assert small.open("A", "10.0.0.3", 0) == WELCOME


def test_clients_cannot_take_the_place_of_brokers() -> None:
    """A listener of the brokers' own is not counted with the others."""
    rules = ConnectionRules(Room(connections_max=1, creation_rate=1), protected=frozenset({"B"}))
    small = quotas(rules)
    assert small.open("A", "10.0.0.1", 0) == WELCOME
    assert [small.open("B", "10.0.0.2", 0) for _ in range(5)] == [WELCOME] * 5


def test_a_listener_can_have_room_of_its_own() -> None:
    """It counts besides the broker's."""
    small = quotas(ConnectionRules(listeners={"A": Room(connections_max=1)}))
    assert small.open("A", "10.0.0.1", 0) == WELCOME
    refused = small.open("A", "10.0.0.1", 0)
    assert refused.refusal == "its listener already has max.connections (1) of them"
    assert small.open("B", "10.0.0.1", 0) == WELCOME


def test_an_address_has_so_many_connections() -> None:
    """The default, or its own."""
    small = quotas(ConnectionRules(per_address_max=1, overrides={"10.0.0.9": 2}))
    for address, most in (("10.0.0.1", 1), ("10.0.0.9", 2)):
        assert [small.open("L", address, 0) for _ in range(most)] == [WELCOME] * most
        refused = small.open("L", address, 0)
        expected = f"its address already has max.connections.per.ip ({most}) of them"
        assert refused == ConnectionVerdict(expected)


def test_connections_that_come_too_fast_are_served_later() -> None:
    """Ten a second: of thirty at once, the last is served after two seconds."""
    slow = quotas(ConnectionRules(Room(creation_rate=10)))
    waits = [slow.open("L", f"10.0.0.{n}", 0).wait_ms for n in range(30)]

    assert waits[:10] == [0] * 10
    assert waits[10:] == list(range(100, 2001, 100))


def test_an_address_that_comes_too_fast_is_closed_after_a_while() -> None:
    """What was refused does not count: who comes again in time is welcome."""
    slow = quotas(ConnectionRules(), address_rate=2.0)
    verdicts = [slow.open("L", "10.0.0.1", 0) for _ in range(5)]

    assert verdicts[:2] == [WELCOME] * 2
    assert [v.wait_ms for v in verdicts[2:]] == [500] * 3
    assert all("connection_creation_rate" in (v.refusal or "") for v in verdicts[2:])
    assert slow.open("L", "10.0.0.2", 0) == WELCOME
    assert slow.open("L", "10.0.0.1", 500) == WELCOME


def test_rules_can_be_others_at_once() -> None:
    """Whoever is there already stays."""
    small = quotas(ConnectionRules(Room(connections_max=1)))
    small.open("L", "10.0.0.1", 0)
    small.rules = ConnectionRules(Room(connections_max=2))
    assert small.open("L", "10.0.0.1", 0) == WELCOME


def test_overrides_are_read() -> None:
    """Addresses may have colons themselves."""
    assert parse_overrides("") == {}
    assert parse_overrides("10.0.0.1:5, [::1]:7,host:0") == {"10.0.0.1": 5, "::1": 7, "host": 0}
    for wrong in ("10.0.0.1", ":5", "10.0.0.1:many"):
        with pytest.raises(ValueError, match="address:count"):
            parse_overrides(wrong)
