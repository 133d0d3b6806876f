"""Addresses that fail to log in: who waits, for how long, and who is closed."""

from ottla.quota.failing_addresses import FailingAddresses

HERE, THERE = "10.0.0.1", "10.0.0.2"


def failed(count: int, now_ms: int = 0) -> FailingAddresses:
    addresses = FailingAddresses(10)
    for _ in range(count):
        addresses.failed(HERE, now_ms)
    return addresses


def test_few_failures_delay_no_connection() -> None:
    """Twenty at once, and ten a second for ever."""
    addresses = failed(20)
    assert [addresses.wait_ms(HERE, 0) for _ in range(100)] == [0] * 100
    for now_ms in range(100, 60_000, 100):
        addresses.failed(HERE, now_ms)
        assert addresses.wait_ms(HERE, now_ms) == 0


def test_connections_of_a_failing_address_are_served_ten_a_second() -> None:
    """Up to five seconds later; further ones are closed."""
    addresses = failed(21)
    waits = [addresses.wait_ms(HERE, 0) for _ in range(53)]
    assert waits == [*range(0, 5_001, 100), None, None]
    assert addresses.wait_ms(HERE, 50) is None


def test_another_address_is_not_concerned() -> None:
    """Neither before nor after failures of its own."""
    addresses = failed(1000)
    assert addresses.wait_ms(THERE, 0) == 0
    addresses.failed(THERE, 0)
    assert addresses.wait_ms(THERE, 0) == 0


def test_an_address_is_forgiven_in_seconds() -> None:
    """However often it failed: eight seconds after the last time."""
    addresses = failed(100_000)
    assert addresses.wait_ms(HERE, 7_900) == 0
    assert addresses.wait_ms(HERE, 7_900) == 100
    assert [addresses.wait_ms(HERE, 8_000) for _ in range(3)] == [0, 0, 0]


def test_so_many_addresses_are_remembered() -> None:
    """The one that failed longest ago is forgotten."""
    addresses = failed(50)
    for number in range(10_000):
        addresses.failed(f"other {number}", 0)
    assert [addresses.wait_ms(HERE, 0) for _ in range(3)] == [0, 0, 0]
    assert len(addresses._addresses) == 10_000
