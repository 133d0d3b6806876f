"""`ottla user`, and `--config`: a command logs in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from rig.probe import free_port
from rig.secret_search import register

import ottla.testing
from tests.system.cli.ottla_command import Command

PASSWORD = "a long secret"
register(PASSWORD)


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    return free_port(), free_port()


@pytest.fixture(scope="module")
def open_command(ports: tuple[int, int]) -> Iterator[Command]:
    """Commands to the listener in the clear; the other one is beside it."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:{},SASL_PLAINTEXT://127.0.0.1:{}".format(*ports),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    }
    with ottla.testing.Broker(settings=settings):
        yield Command(f"127.0.0.1:{ports[0]}")


def test_users_are_made_listed_and_removed(open_command: Command) -> None:
    """Passwords come by standard input, and are shown nowhere."""
    assert open_command("user", "list", "-o", "json").json == []
    made = open_command("user", "add", "bob", stdin=PASSWORD + "\n")
    assert made.out == "made user bob\n"
    assert "there is a user bob already" in open_command.refused("user", "add", "bob", stdin="x\n")
    listed = open_command("user", "list", "-o", "json").json
    assert listed == [
        {"user": "bob", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "bob", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    open_command("user", "remove", "bob")
    assert "there is none" in open_command.refused("user", "remove", "bob")
    assert "there is no user" in open_command.refused("user", "password", "bob", stdin="x\n")
    assert "the password is empty" in open_command.misused("user", "add", "bob", stdin="\n")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_command_logs_in_with_the_file_that_config_names(
    open_command: Command, ports: tuple[int, int], tmp_path: Path, mechanism: str
) -> None:
    """With the new password once it is changed; a wrong one is the broker's refusal."""
    name = f"alice-{mechanism}"
    open_command("user", "add", name, stdin="the first one\n")
    open_command("user", "password", name, stdin=PASSWORD + "\n")
    file = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    jaas = f'sasl.jaas.config={module} username="{name}" password="{PASSWORD}";\n'
    common = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
    file.write_text(common + jaas)
    secured = Command(f"127.0.0.1:{ports[1]}")
    topic = f"flights-{mechanism}"
    secured("topic", "create", topic, "--config", str(file))
    assert topic in secured("topic", "list", "--config", str(file)).out
    file.write_text(f"{common}sasl.username={name}\nsasl.password=the first one\n")
    said = secured.refused("topic", "list", "--config", str(file))
    assert "refused the login of user" in said
    assert "the first one" not in said


def require_refused(client: AdminClient, errors: list[KafkaError]) -> None:
    """Every request fails, until librdkafka says that it is for the login."""
    while KafkaError._AUTHENTICATION not in {error.code() for error in errors}:
        with pytest.raises(KafkaException):
            client.list_topics(timeout=0.5)
        client.poll(0)


def test_a_new_password_ends_sessions_where_that_is_wanted(
    open_command: Command, ports: tuple[int, int]
) -> None:
    """Connections that are logged in as the user are closed; without the option they go on."""
    open_command("user", "add", "carol", stdin="the first one\n")
    identity = {
        "bootstrap.servers": f"127.0.0.1:{ports[1]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "carol",
        "sasl.password": "the first one",
        "log_level": 0,
    }
    errors: list[KafkaError] = []
    admin = AdminClient({**identity, "error_cb": errors.append})
    # Besides its first connection the client makes one to the broker that the answer names.
    assert admin.describe_cluster().result(90).nodes
    open_command("user", "password", "carol", stdin="the second one\n")
    assert admin.describe_cluster().result(90).nodes
    open_command("user", "password", "carol", "--end-sessions", stdin=PASSWORD + "\n")
    require_refused(admin, errors)
    others: list[KafkaError] = []
    require_refused(AdminClient({**identity, "error_cb": others.append}), others)
    assert AdminClient({**identity, "sasl.password": PASSWORD}).list_topics(timeout=90).brokers
    said = open_command.misused("user", "password", "carol", "--end-sessions", "--store", "x")
    assert "leave --store out" in said


def test_a_principal_in_place_of_a_name_is_not_sent_to_a_command_that_refuses_it(
    open_command: Command,
) -> None:
    """`ottla user add User:bob` is refused, too."""
    said = open_command.refused("user", "password", "User:bob", stdin=PASSWORD + "\n")
    assert "there is no user User:bob; give the name without User:" in said


@pytest.mark.parametrize("name", ["User:bob", "bob\n", " bob", "", "ANONYMOUS", "<default>"])
def test_names_that_nobody_means_are_refused(open_command: Command, name: str) -> None:
    """Such a user could never be the principal that an ACL names."""
    before = open_command("user", "list", "-o", "json").json
    answer = open_command.try_to("user", "add", name, stdin=PASSWORD + "\n")
    assert answer.code == 2
    assert "name" in answer.error
    assert open_command("user", "list", "-o", "json").json == before
