"""Log lines about refused clients."""

import logging

import pytest

from ottla.network.refusals import Refusals


def test_many_addresses_are_a_hundred_lines_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Then one says how many were left out."""
    now_s = 1000.0
    refusals = Refusals(lambda: now_s)
    caplog.set_level(logging.WARNING)
    for number in range(5000):
        refusals.log((f"10.0.{number}", "kind"), lambda number=number: f"client {number}")
    assert len(caplog.records) == 100
    now_s += 60
    refusals.log(("10.1.0.1", "kind"), lambda: "another")
    assert [record.getMessage() for record in caplog.records[100:]] == [
        "4900 refusals of clients, each of another address or cause, were not logged: 100 are, in"
        " a minute",
        "another; repetitions are not logged for 10 minutes",
    ]


def test_a_burst_that_has_ended_is_summed_up(caplog: pytest.LogCaptureFixture) -> None:
    """Once, after its ten minutes, even if nothing else is refused; what came alone is not."""
    now_s = 1000.0
    refusals = Refusals(lambda: now_s)
    caplog.set_level(logging.WARNING)
    for _ in range(58):
        refusals.log(("10.0.0.1", "too many connections"), lambda: "closing")
    refusals.log(("10.0.0.2", "too many connections"), lambda: "closing")
    refusals.sum_up()
    assert len(caplog.records) == 2
    now_s += 600
    refusals.sum_up()
    refusals.sum_up()
    assert caplog.messages[2:] == [
        "57 more refusals like the last one of (10.0.0.1, too many connections)"
    ]
