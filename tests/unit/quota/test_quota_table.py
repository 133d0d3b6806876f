"""Which quota holds for whom: Kafka's eight levels, the most special first."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.metadata.quota_entity import (
    DEFAULT,
    QuotaEntity,
    entity_parts,
    parse_entity,
    quota_entity,
    quota_path,
)
from ottla.quota.table import Held, QuotaKey, QuotaTable, check_limit, known_key, limit_text

# From the most special to the least, and who shares the limit there.
LEVELS = [
    (QuotaEntity("u", "c"), QuotaEntity("u", "c")),
    (QuotaEntity("u", DEFAULT), QuotaEntity("u", "c")),
    (QuotaEntity("u"), QuotaEntity("u")),
    (QuotaEntity(DEFAULT, "c"), QuotaEntity("u", "c")),
    (QuotaEntity(DEFAULT, DEFAULT), QuotaEntity("u", "c")),
    (QuotaEntity(DEFAULT), QuotaEntity("u")),
    (QuotaEntity(client_id="c"), QuotaEntity(client_id="c")),
    (QuotaEntity(client_id=DEFAULT), QuotaEntity(client_id="c")),
]
NAMES = st.one_of(st.just(DEFAULT), st.text(min_size=1))
ENTITIES = st.one_of(
    st.builds(QuotaEntity, NAMES),
    st.builds(QuotaEntity, NAMES, NAMES),
    st.builds(QuotaEntity, st.none(), NAMES),
    st.builds(QuotaEntity, ip=NAMES),
)


@pytest.mark.parametrize("level", range(8))
def test_the_most_special_level_that_is_set_holds(level: int) -> None:
    """Of the levels from one on, that one; those below change nothing."""
    quotas = {
        entity: {QuotaKey.PRODUCE: float(index)}
        for index, (entity, _) in enumerate(LEVELS)
        if index >= level
    }

    assert QuotaTable(quotas).held(QuotaKey.PRODUCE, "u", "c") == Held(level, LEVELS[level][1])


def test_each_key_is_looked_up_for_itself() -> None:
    """A level without the key asked for is passed over."""
    table = QuotaTable(
        {
            QuotaEntity("u", "c"): {QuotaKey.FETCH: 1.0},
            QuotaEntity(client_id="c"): {QuotaKey.PRODUCE: 2.0},
        }
    )

    assert table.held(QuotaKey.PRODUCE, "u", "c") == Held(2.0, QuotaEntity(client_id="c"))
    assert table.held(QuotaKey.FETCH, "u", "c") == Held(1.0, QuotaEntity("u", "c"))
    assert table.held(QuotaKey.REQUEST, "u", "c") is None
    assert table.held(QuotaKey.PRODUCE, "u", "d") is None


def test_a_default_holds_for_each_by_itself() -> None:
    """Two users under the default user quota share nothing."""
    table = QuotaTable({QuotaEntity(DEFAULT): {QuotaKey.PRODUCE: 5.0}})

    assert table.held(QuotaKey.PRODUCE, "a", "c") == Held(5.0, QuotaEntity("a"))
    assert table.held(QuotaKey.PRODUCE, "b", "c") == Held(5.0, QuotaEntity("b"))


def test_an_address_has_its_own_rate_or_the_default() -> None:
    """And each address its own count."""
    table = QuotaTable(
        {
            QuotaEntity(ip="10.0.0.1"): {QuotaKey.CONNECTION: 1.0},
            QuotaEntity(ip=DEFAULT): {QuotaKey.CONNECTION: 2.0},
        }
    )

    assert table.held_address("10.0.0.1") == Held(1.0, QuotaEntity(ip="10.0.0.1"))
    assert table.held_address("10.0.0.2") == Held(2.0, QuotaEntity(ip="10.0.0.2"))
    assert not table.limits_clients


def test_an_entity_without_limits_is_gone() -> None:
    """Removing the last limit removes the entity, and with it the need to look."""
    table = QuotaTable({}).with_limits(QuotaEntity("u"), {QuotaKey.PRODUCE: 1.0})
    assert table.limits_clients
    table = table.with_limits(QuotaEntity("u"), {})

    assert table.quotas == {}
    assert not table.limits_clients


def test_entities_stand_under_kafkas_paths() -> None:
    """As Kafka's brokers before 4.0 wrote them into ZooKeeper."""
    assert quota_path(QuotaEntity("CN=a b/*~é")) == "/config/users/CN%3Da%20b%2F%2A%7E%C3%A9"
    assert quota_path(QuotaEntity(DEFAULT)) == "/config/users/<default>"
    assert quota_path(QuotaEntity("u", DEFAULT)) == "/config/users/u/clients/<default>"
    assert quota_path(QuotaEntity(client_id="c-1")) == "/config/clients/c-1"
    assert quota_path(QuotaEntity(ip="127.0.0.1")) == "/config/ips/127.0.0.1"
    assert quota_entity("/config/users/u/clients") is None
    assert quota_entity("/config/users") is None
    assert quota_entity("/config/topics/t") is None


@settings(deadline=None)
@given(ENTITIES)
def test_an_entity_comes_back_from_its_path_and_its_parts(entity: QuotaEntity) -> None:
    """Whatever names are: even one that looks like the default's. An ip must be one, besides."""
    assert quota_entity(quota_path(entity)) == entity
    if not isinstance(entity.ip, str):
        assert parse_entity(entity_parts(entity)) == entity


@pytest.mark.parametrize(
    ("ip", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:DB8::7", "2001:db8::7"),
        ("0::1", "::1"),
        ("[::1]", "::1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
def test_an_address_is_held_however_it_is_spelled(ip: str, address: str) -> None:
    """The quota of an ip holds for the address that sockets report."""
    entity = parse_entity([("ip", ip)])
    table = QuotaTable({entity: {QuotaKey.CONNECTION: 5.0}})
    held = table.held_address(address)
    assert held is not None
    assert held.limit == 5.0
    assert entity_parts(entity) == [("ip", ip)]


@pytest.mark.parametrize(
    "ip", ["192.0.2.7 ", " 192.0.2.7", "not an ip", "<default>", "192.0.2.7/8", "fe80::1%lo"]
)
def test_what_is_no_address_has_no_quota(ip: str) -> None:
    """INVALID_REQUEST, as in Kafka: it would limit nothing."""
    with pytest.raises(OttlaError, match=r"INVALID_REQUEST.*is not a valid IP"):
        parse_entity([("ip", ip)])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "empty client quota entity"),
        ([("group", "g")], "entity type: group"),
        ([("user", "a"), ("user", "b")], "duplicate entity type user"),
        ([("user", "")], "empty user entity name"),
        ([("ip", "1.2.3.4"), ("user", "a")], "cannot be combined"),
    ],
)
def test_what_is_no_entity_is_refused(parts: list[tuple[str, str | None]], words: str) -> None:
    """INVALID_REQUEST, and why."""
    with pytest.raises(OttlaError, match=words) as raised:
        parse_entity(parts)
    assert raised.value.code.name == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (QuotaKey.PRODUCE, -1.0, "greater than 0"),
        (QuotaKey.REQUEST, 0.0, "greater than 0"),
        (QuotaKey.REQUEST, float("nan"), "greater than 0"),
        (QuotaKey.MUTATION, float("inf"), "greater than 0"),
        (QuotaKey.FETCH, 1.5, "fractional"),
        (QuotaKey.CONNECTION, 2.0**31, "too large"),
    ],
)
def test_what_limits_nothing_is_refused(key: QuotaKey, value: float, words: str) -> None:
    """INVALID_REQUEST, and why."""
    with pytest.raises(OttlaError, match=words) as raised:
        check_limit(key, value)
    assert raised.value.code.name == "INVALID_REQUEST"


def test_keys_belong_to_kinds_of_entities() -> None:
    """Connections are counted by address, bytes by client."""
    assert known_key(QuotaEntity("u"), "producer_byte_rate") is QuotaKey.PRODUCE
    assert known_key(QuotaEntity(ip="1.1.1.1"), "connection_creation_rate") is QuotaKey.CONNECTION
    with pytest.raises(OttlaError, match="quotas of an ip are connection_creation_rate"):
        known_key(QuotaEntity(ip="1.1.1.1"), "producer_byte_rate")
    with pytest.raises(OttlaError, match="Invalid configuration key speed"):
        known_key(QuotaEntity("u"), "speed")


def test_limits_are_written_as_kafka_does() -> None:
    """Rates of bytes as whole numbers, percentages as they are."""
    assert limit_text(QuotaKey.PRODUCE, 1024.0) == "1024"
    assert limit_text(QuotaKey.REQUEST, 12.5) == "12.5"
    assert limit_text(QuotaKey.REQUEST, 50.0) == "50.0"
