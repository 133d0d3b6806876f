"""Java's tools (4.3) tell of groups of both protocols, and change the settings of one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import confluent_kafka
import pytest
from rig import tools as t
from rig.tools import Ran, Tools

MakeTopic = Callable[..., str]
Run = Callable[..., Ran]
CONSUMER = {"group.protocol": "consumer"}


@pytest.fixture
def run(jvm: Tools, bootstrap: str) -> Run:
    """Run a tool against the broker."""
    return lambda name, *arguments: jvm.run(name, "--bootstrap-server", bootstrap, *arguments)


@contextmanager
def reading(bootstrap: str, topic: str, client_id: str, **own: str) -> Iterator[None]:
    """A librdkafka consumer that has partitions of `topic`, in a thread."""
    settings = {name.replace("_", "."): value for name, value in own.items()}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "client.id": client_id,
            "log_level": 0,
            **settings,
        }
    )
    assigned, done = threading.Event(), threading.Event()
    consumer.subscribe([topic], on_assign=lambda *_: assigned.set())

    def poll() -> None:
        while not done.is_set():
            consumer.poll(0.1)
        consumer.close()

    # If it does not end, the others still do.
    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        assert assigned.wait(180), f"{client_id} has got no partitions of {topic}"
        yield
    finally:
        done.set()
        thread.join(180)
        assert not thread.is_alive(), f"{client_id} is still closing after 180 s"


def test_groups_of_both_protocols_are_told_apart(
    run: Run, bootstrap: str, make_topic: MakeTopic
) -> None:
    """By the list, by their state with epochs, and by their members with what each has."""
    old, new = make_topic(partitions=2), make_topic(partitions=2)
    with ExitStack() as readers:
        readers.enter_context(reading(bootstrap, old, "old"))
        readers.enter_context(reading(bootstrap, new, "new", group_protocol="consumer"))
        listed = run(t.GROUPS_OF_ALL_KINDS, "--list").ok()
        kinds = {line.split()[0]: line.split()[1:3] for line in listed.splitlines()[1:] if line}
        state = run(t.GROUPS, "--describe", "--group", new, "--state", "--verbose").ok()
        members = run(t.GROUPS, "--describe", "--group", new, "--members", "--verbose").ok()
        classic = run(t.GROUPS, "--describe", "--group", old, "--members", "--verbose").ok()
    assert kinds[old] == ["Classic", "consumer"]
    assert kinds[new] == ["Consumer", "consumer"]
    fields = cells(state)
    assert (fields["STATE"], fields["GROUP-EPOCH"]) == ("Stable", "2")
    assert (fields["TARGET-ASSIGNMENT-EPOCH"], fields["#MEMBERS"]) == ("2", "1")
    assert fields["ASSIGNMENT-STRATEGY"] == "uniform"
    fields = cells(members)
    assert (fields["CLIENT-ID"], fields["#PARTITIONS"]) == ("new", "2")
    assert (fields["CURRENT-EPOCH"], fields["TARGET-EPOCH"]) == ("2", "2")
    assert fields["CURRENT-ASSIGNMENT"] == f"{new}:0,1"
    assert cells(classic)["CLIENT-ID"] == "old"


def test_members_that_are_to_be_changed_yet_are_told(
    run: Run, bootstrap: str, make_topic: MakeTopic
) -> None:
    """In a group that has members of both protocols."""
    group = make_topic(partitions=2)
    with ExitStack() as readers:
        readers.enter_context(reading(bootstrap, group, "old"))
        readers.enter_context(reading(bootstrap, group, "new", group_protocol="consumer"))
        described = run(t.GROUPS, "--describe", "--group", group, "--members", "--verbose").ok()
    rows = table(described)
    assert {row["CLIENT-ID"]: row["UPGRADED"] for row in rows} == {"old": "false", "new": "true"}


def test_settings_of_a_group_are_changed_within_the_brokers_bounds(
    run: Run, make_topic: MakeTopic
) -> None:
    """And told with where they come from; what lies outside is refused with the bound."""
    group = make_topic()
    entity = ("--entity-type", "groups", "--entity-name", group)
    wanted = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000"
    run(t.CONFIGS, *entity, "--alter", "--add-config", wanted).ok()
    described = run(t.CONFIGS, *entity, "--describe").ok()
    assert "consumer.session.timeout.ms=50000" in described
    assert "consumer.heartbeat.interval.ms=6000" in described
    for beyond in ("consumer.session.timeout.ms=60001", "consumer.session.timeout.ms=44999"):
        refused = run(t.CONFIGS, *entity, "--alter", "--add-config", beyond)
        assert refused.exit_code == 1
        assert "group.consumer.m" in refused.out + refused.err
    run(t.CONFIGS, *entity, "--alter", "--delete-config", "consumer.session.timeout.ms").ok()
    everything = run(t.CONFIGS, *entity, "--describe", "--all").ok()
    assert "consumer.session.timeout.ms=45000" in everything
    assert "consumer.heartbeat.interval.ms=6000" in everything


def table(printed: str) -> list[dict[str, str]]:
    """The rows of a tool's table, by its titles."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    start = next(number for number, words in enumerate(lines) if words[0] == "GROUP")
    return [dict(zip(lines[start], words, strict=False)) for words in lines[start + 1 :]]


def cells(printed: str) -> dict[str, str]:
    """Of a table with one row."""
    (row,) = table(printed)
    return row
