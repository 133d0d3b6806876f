"""Which loggers an area has."""

import pytest

from ottla.operations.settings import loggers_in

LOGGERS = (
    "ottla",
    "ottla.broker",
    "ottla.broker.replication",
    "ottla.broker.replication.fetcher",
    "ottla.network.tls",
    "ottla.replica",
)


@pytest.mark.parametrize(
    ("area", "expected"),
    [
        ("replica", {LOGGERS[2], LOGGERS[3], LOGGERS[5]}),
        ("fetch", {LOGGERS[3]}),
        ("tls", {LOGGERS[4]}),
        ("ottla", set(LOGGERS)),
        ("", set(LOGGERS)),
        ("twork", set()),
    ],
)
def test_an_area_is_the_beginning_of_a_part_of_the_name(area: str, expected: set[str]) -> None:
    assert set(loggers_in(area, LOGGERS)) == expected
