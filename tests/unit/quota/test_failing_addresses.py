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


def test_where_many_addresses_fail_all_of_them_wait() -> None:
    """Twenty connections a second are served; an address that did not fail is not concerned."""
    addresses = FailingAddresses(10)
    for number in range(41):
        addresses.failed(f"10.0.1.{number}", 0)
    waits = [addresses.wait_ms(f"10.0.1.{number % 41}", 0) for number in range(110)]
    assert waits[:3] == [0, 50, 100]
    assert waits.count(None) == 110 - 101
    assert addresses.wait_ms(HERE, 0) == 0
    # Half a second later the failures are no longer too many.
    assert addresses.wait_ms("10.0.1.1", 500) == 0


def test_an_address_that_failed_is_one_of_many_for_ten_seconds() -> None:
    """However seldom it fails itself."""
    addresses = FailingAddresses(10)
    addresses.failed(HERE, 0)
    for now_ms in (9_999, 10_000):
        for number in range(150):
            addresses.failed(f"10.0.1.{number}", now_ms)
        waits = [addresses.wait_ms(HERE, now_ms) for _ in range(2)]
        assert waits == ([0, 50] if now_ms == 9_999 else [0, 0])


def test_what_is_closed_is_closed_late_so_that_it_comes_back_late() -> None:
    """A thousand in five seconds; what comes beyond that is not kept."""
    addresses = FailingAddresses(10)
    assert [addresses.close_after_ms(10_000) for _ in range(1000)] == [5_000] * 1000
    assert addresses.close_after_ms(14_999) == 0
    assert addresses.close_after_ms(15_000) == 5_000


def test_so_many_addresses_are_remembered() -> None:
    """The one that failed longest ago is forgotten."""
    addresses = failed(50)
    for number in range(10_000):
        addresses.failed(f"other {number}", 0)
    assert [addresses.wait_ms(HERE, 0) for _ in range(3)] == [0, 0, 0]
    assert len(addresses._addresses) == 10_000
