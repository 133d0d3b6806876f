"""Which entities a DescribeClientQuotas means."""

import pytest

from ottla.base.errors import OttlaError
from ottla.metadata.quota_entity import DEFAULT, QuotaEntity
from ottla.quota.filter import Component, check_filter, is_meant, parse_component

USER, CLIENT, BOTH = QuotaEntity("u"), QuotaEntity(client_id="c"), QuotaEntity("u", "c")
DEFAULT_USER = QuotaEntity(DEFAULT)
ALL = [USER, CLIENT, BOTH, DEFAULT_USER]


def meant(*components: Component, strict: bool = False) -> list[QuotaEntity]:
    return [entity for entity in ALL if is_meant(entity, components, strict=strict)]


def test_no_condition_means_everybody() -> None:
    """And strictly, nobody."""
    assert meant() == ALL
    assert meant(strict=True) == []


def test_a_condition_means_who_has_the_kind() -> None:
    """By name, by default, or any; strictly, who has nothing besides."""
    assert meant(Component("user", "u")) == [USER, BOTH]
    assert meant(Component("user", "u"), strict=True) == [USER]
    assert meant(Component("user", DEFAULT)) == [DEFAULT_USER]
    assert meant(Component("user", None)) == [USER, BOTH, DEFAULT_USER]
    assert meant(Component("user", None), Component("client-id", None)) == [BOTH]


def test_conditions_are_read_as_the_protocol_writes_them() -> None:
    """0 exact, 1 the default, 2 any."""
    assert parse_component("user", 0, "u") == Component("user", "u")
    assert parse_component("ip", 1, None) == Component("ip", DEFAULT)
    assert parse_component("client-id", 2, None) == Component("client-id", None)


@pytest.mark.parametrize(
    ("kind", "match_type", "match", "words"),
    [
        ("topic", 0, "t", "UNSUPPORTED_VERSION: Unsupported entity type topic"),
        ("", 0, "t", "empty entity type"),
        ("user", 3, None, "match type 3"),
        ("user", 0, None, "lacks the user"),
        ("user", 2, "u", "match type is not exact"),
    ],
)
def test_a_condition_without_a_meaning_is_refused(
    kind: str, match_type: int, match: str | None, words: str
) -> None:
    """INVALID_REQUEST, or UNSUPPORTED_VERSION for a kind that does not exist, and why."""
    with pytest.raises(OttlaError, match=words):
        parse_component(kind, match_type, match)


def test_conditions_that_contradict_each_other_are_refused() -> None:
    """A kind twice, or an address with a user."""
    with pytest.raises(OttlaError, match="more than once"):
        check_filter([Component("user", "a"), Component("user", "b")])
    with pytest.raises(OttlaError, match="cannot be combined"):
        check_filter([Component("ip", None), Component("user", "b")])


class Compared(str):
    """A kind that counts how often it is compared."""

    __slots__ = ()
    count = 0

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_many_conditions_are_not_compared_with_each_other() -> None:
    """The work grows as the filter does."""
    with pytest.raises(OttlaError, match="more than once"):
        check_filter([Component(Compared("user"), None) for _ in range(1_000)])
    assert Compared.count < 5_000
