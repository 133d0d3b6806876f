"""Which of the quotas that are set hold for a client."""

from ottla.diagnosis.access import HeldLimit, limits_of
from ottla.metadata.quota_entity import DEFAULT, QuotaEntity
from ottla.quota.table import QuotaKey

ALICE = QuotaEntity("alice")
LOADER = QuotaEntity(client_id="loader")
BOTH = QuotaEntity("alice", "loader")
ANY_USER = QuotaEntity(DEFAULT)
ADDRESS = QuotaEntity(ip="10.0.0.7")
ANY_ADDRESS = QuotaEntity(ip=DEFAULT)


def test_of_several_the_most_special_holds_for_each_kind_of_limit() -> None:
    """A user with a client id, then the user, then the client id; names before defaults."""
    found = {
        ANY_USER: {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "request_percentage": 3.0},
        LOADER: {"producer_byte_rate": 10.0, "controller_mutation_rate": 4.0},
        ALICE: {"producer_byte_rate": 20.0, "consumer_byte_rate": 30.0},
        BOTH: {"producer_byte_rate": 40.0},
    }
    assert limits_of(BOTH, found) == [
        HeldLimit(QuotaKey.PRODUCE, 40.0, BOTH),
        HeldLimit(QuotaKey.FETCH, 30.0, ALICE),
        HeldLimit(QuotaKey.REQUEST, 3.0, ANY_USER),
        HeldLimit(QuotaKey.MUTATION, 4.0, LOADER),
    ]
    assert limits_of(LOADER, {LOADER: {"request_percentage": 5.0}}) == [
        HeldLimit(QuotaKey.REQUEST, 5.0, LOADER)
    ]
    assert limits_of(QuotaEntity("bob"), {ALICE: {"producer_byte_rate": 1.0}}) == []


def test_an_address_falls_under_the_default_of_addresses_only() -> None:
    """Quotas of users do not hold for it, and what it cannot have is not shown."""
    found = {
        ANY_ADDRESS: {"connection_creation_rate": 5.0},
        ANY_USER: {"producer_byte_rate": 1.0},
    }
    assert limits_of(ADDRESS, found) == [HeldLimit(QuotaKey.CONNECTION, 5.0, ANY_ADDRESS)]
    found[ADDRESS] = {"connection_creation_rate": 9.0}
    assert limits_of(ADDRESS, found) == [HeldLimit(QuotaKey.CONNECTION, 9.0, ADDRESS)]
    assert limits_of(ANY_ADDRESS, found) == [HeldLimit(QuotaKey.CONNECTION, 5.0, ANY_ADDRESS)]
