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
    parse_user_overrides,
)
from ottla.quota.table import QuotaKey, QuotaTable


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


def test_the_addresses_of_an_ipv6_network_have_so_many_together() -> None:
    """One machine has all of a /64; an address with a limit of its own is counted by itself."""
    small = quotas(ConnectionRules(per_address_max=2, overrides={"2001:db8::9": 3}))
    for number in (1, 2):
        assert small.open("L", f"2001:db8::{number}", 0) == WELCOME
    assert small.open("L", "2001:db8::3", 0).refusal is not None
    assert small.open("L", "2001:db8:0:1::3", 0) == WELCOME
    assert [small.open("L", "2001:db8::9", 0) for _ in range(3)] == [WELCOME] * 3
    assert small.open("L", "2001:db8::9", 0).refusal is not None
    for address in ("1", "2", "3", "9", "9", "9", "9"):
        small.close("L", f"2001:db8::{address}")
    assert small.open("L", "2001:db8::4", 0) == WELCOME


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


def test_a_user_has_so_many_connections_over_all_listeners() -> None:
    """Those of brokers, on their own listener, are counted and not refused."""
    rules = ConnectionRules(
        per_user_max=2, user_overrides={"carol": 1}, protected=frozenset({"BROKERS"})
    )
    small = quotas(rules)
    assert small.enter("A", "alice") is None
    assert small.enter("B", "alice") is None
    assert small.enter("A", "bob") is None
    refusal = "its user alice already has max.connections.per.user (2) of them"
    assert small.enter("A", "alice") == refusal
    assert small.enter("BROKERS", "alice") is None
    small.leave("alice")
    small.leave("alice")
    assert small.enter("A", "alice") == refusal
    small.leave("alice")
    small.leave("alice")
    assert small.enter("A", "alice") is None
    assert [small.enter("A", "carol") is None for _ in range(2)] == [True, False]


def test_connections_leave_descriptors_for_files() -> None:
    """Those of brokers are taken nevertheless."""
    small = quotas(ConnectionRules(descriptors_max=1, protected=frozenset({"BROKERS"})))
    assert small.open("A", "10.0.0.1", 0) == WELCOME
    refused = small.open("A", "10.0.0.1", 0)
    assert refused.refusal is not None
    assert "limit of open files leaves no room" in refused.refusal
    assert small.open("BROKERS", "10.0.0.1", 0) == WELCOME


def test_a_failing_address_is_slowed_but_on_the_listener_of_brokers() -> None:
    """Its connections wait for their turn; then they are closed."""
    rules = ConnectionRules(failed_logins_rate=10, protected=frozenset({"BROKERS"}))
    small = quotas(rules)
    for _ in range(30):
        small.failing.failed("10.0.0.1", 0)
    verdicts = [small.open("A", "10.0.0.1", 0) for _ in range(52)]
    assert verdicts[:3] == [WELCOME, ConnectionVerdict(None, 100), ConnectionVerdict(None, 200)]
    refusal = "clients of its address fail to log in too often"
    assert verdicts[-1] == ConnectionVerdict(refusal, 5_000)
    assert small.open("A", "10.0.0.2", 0) == WELCOME
    assert small.open("BROKERS", "10.0.0.1", 0) == WELCOME


def test_names_of_users_with_limits_may_have_commas_and_colons() -> None:
    """The last colon ends a name, a semicolon the pair."""
    assert parse_user_overrides("alice:3; CN=a,OU=b:5;x:y:7;") == {
        "alice": 3,
        "CN=a,OU=b": 5,
        "x:y": 7,
    }
    with pytest.raises(ValueError, match="not of the form user:count"):
        parse_user_overrides("alice")


def test_a_slowed_address_is_free_when_the_setting_is_raised() -> None:
    """Rules can change while a broker runs."""
    small = quotas(ConnectionRules(failed_logins_rate=1))
    for _ in range(3):
        small.failing.failed("10.0.0.1", 0)
    assert [small.open("A", "10.0.0.1", 0).wait_ms for _ in range(2)] == [0, 1000]
    small.take(ConnectionRules(failed_logins_rate=100))
    assert [small.open("A", "10.0.0.1", 0).wait_ms for _ in range(2)] == [0, 0]
