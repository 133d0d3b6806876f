"""`ottla quota`: what is set, what holds for whom, and changes of it."""

from collections.abc import Iterator

import pytest

from tests.system.cli.ottla_command import Command

WHOM = ("--user", "alice", "--client-id", "loader")


@pytest.fixture(autouse=True)
def nothing_stays(run: Command) -> Iterator[None]:
    """Quotas that a test has set are removed after it."""
    yield
    for row in run("quota", "list", "-o", "json").json:
        words = []
        for part in row["who"].split(", "):
            kind, name = part.split(" ", 1)
            words += [f"--default-{kind}"] if name == "<default>" else [f"--{kind}", name]
        run("quota", "alter", *words, "--unset", row["quota"])


def test_a_quota_is_altered_listed_and_removed(run: Command) -> None:
    """Old and new limits are shown; units are understood; -o json holds the same."""
    changed = run("quota", "alter", *WHOM, "--set", "producer_byte_rate=2Mi", "-o", "json").json
    who = "user alice, client-id loader"
    assert changed == [{"who": who, "quota": "producer_byte_rate", "old": None, "new": 2097152}]
    again = run("quota", "alter", *WHOM, "-s", "producer_byte_rate=500k").lines
    assert again[1].split()[-3:] == ["producer_byte_rate", "2097152", "500000"]
    run("quota", "alter", "--default-ip", "-s", "connection_creation_rate=1000")
    listed = run("quota", "list", "-o", "json").json
    assert listed == [
        {"who": "ip <default>", "quota": "connection_creation_rate", "limit": 1000},
        {"who": who, "quota": "producer_byte_rate", "limit": 500000},
    ]
    run("quota", "alter", *WHOM, "--unset", "producer_byte_rate")
    assert len(run("quota", "list").lines) == 2


def test_what_holds_for_a_client_says_for_whom_it_was_set(run: Command) -> None:
    """The most special level of each limit."""
    run("quota", "alter", "--user", "alice", "-s", "producer_byte_rate=1000000")
    run("quota", "alter", "--default-user", "-s", "request_percentage=12.5")
    run("quota", "alter", "--client-id", "loader", "-s", "consumer_byte_rate=7000000")
    run("quota", "alter", "--default-client-id", "-s", "producer_byte_rate=9000000")
    assert run("quota", "describe", *WHOM, "-o", "json").json == [
        {"quota": "producer_byte_rate", "limit": 1000000, "set_for": "user alice"},
        {"quota": "consumer_byte_rate", "limit": 7000000, "set_for": "client-id loader"},
        {"quota": "request_percentage", "limit": 12.5, "set_for": "user <default>"},
    ]
    assert run("quota", "describe", "--default-user", "-o", "json").json == [
        {"quota": "request_percentage", "limit": 12.5, "set_for": "user <default>"}
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--user", "a", "--set", "speed=1"), "Invalid configuration key speed"),
        (("--user", "a", "--set", "producer_byte_rate=-1"), "must be greater than 0"),
        (("--user", "a", "--set", "producer_byte_rate=fast"), "is no number"),
        (("--user", "a"), "nothing to change"),
        (("--set", "producer_byte_rate=1"), "no entity given"),
        (("--ip", "::1", "--user", "a", "--set", "producer_byte_rate=1"), "give it alone"),
        (("--user", "a", "--default-user", "-u", "request_percentage"), "exclude each other"),
    ],
)
def test_wrong_words_change_nothing(run: Command, words: tuple[str, ...], told: str) -> None:
    """They are answered before anybody is asked."""
    said = run.misused("quota", "alter", *words)
    assert told in " ".join(said.split())
    assert run("quota", "list", "-o", "json").json == []
