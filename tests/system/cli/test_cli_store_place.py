"""`--store`: users and ACLs without a broker, before the first start and beside one that runs."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.secret_search import register

import ottla.testing
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command

PASSWORD = "before the first start"
register(PASSWORD)
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
NOWHERE = CommandHere("localhost:1")


def sasl(folder: Path) -> dict[str, str]:
    """A broker whose only listener demands a login, of brokers too."""
    return {
        "log.dirs": str(folder),
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
            f'{SCRAM} username="broker" password="{PASSWORD}";'
        ),
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin",
    }


def until(condition: Callable[[], bool]) -> None:
    """Wait for it; the time limit of the test is the only one."""
    while not condition():
        time.sleep(0.05)


def client_file(folder: Path, user: str) -> str:
    path = folder / f"{user}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username={user}\nsasl.password={PASSWORD}\n"
    )
    return str(path)


def test_a_cluster_that_demands_logins_gets_its_first_users_before_it_starts(
    tmp_path: Path,
) -> None:
    """Those of the brokers and the first administrator; who then makes others over the wire."""
    file = tmp_path / "server.properties"
    settings = sasl(tmp_path / "data")
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    for user in ("broker", "admin"):
        said = NOWHERE("user", "add", user, "--store", str(file), stdin=f"{PASSWORD}\n").out
        assert said == f"made user {user}\n"
    refusal = NOWHERE.refused("user", "add", "admin", "--store", str(file), stdin="x\n")
    assert "there is a user admin already" in refusal
    with ottla.testing.Broker(settings=settings, storage=tmp_path / "data") as broker:
        run = Command(broker.bootstrap)
        admin = ("--config", client_file(tmp_path, "admin"))
        run("topic", "create", "t", *admin)
        # A broker that runs takes over what is changed beside it.
        alice = ("--config", client_file(tmp_path, "alice"))
        data = ("--store", str(tmp_path / "data"))
        NOWHERE("user", "add", "alice", *data, stdin=f"{PASSWORD}\n")
        listed = NOWHERE("user", "list", *data, "-o", "json").json
        users = [each["user"] for each in listed]
        assert users == ["admin", "admin", "alice", "alice", "broker", "broker"]
        until(lambda: run.try_to("topic", "list", *alice, "-o", "json").out == "[]\n")
        rule = ("User:alice", "describe", "topic:t", "--store", str(file))
        NOWHERE("acl", "add", *rule)
        until(lambda: run("topic", "list", *alice).out != "")
        (found,) = NOWHERE("acl", "list", *data, "-o", "json").json
        assert run("acl", "list", *admin, "-o", "json").json == [found]
        NOWHERE("acl", "remove", *rule)
        assert "there is no ACL" in NOWHERE.refused("acl", "remove", *rule)
        until(lambda: run("topic", "list", *alice, "-o", "json").json == [])
        NOWHERE("user", "remove", "alice", *data)
        until(lambda: "refused the login" in run.try_to("topic", "list", *alice).error)
    assert "there is none" in NOWHERE.refused("user", "remove", "alice", "--store", str(file))


def test_the_address_of_a_store_names_it_too(tmp_path: Path) -> None:
    """And the folder of several brokers; a new password is one for both mechanisms."""
    place = f"sqlite://{tmp_path}/store.sqlite"
    NOWHERE("user", "add", "alice", "--store", place, stdin="one\n")
    NOWHERE("user", "password", "alice", "--store", str(tmp_path), stdin="two\n")
    assert [path.name for path in tmp_path.iterdir()] == ["store.sqlite"]
    assert "there is no user bob" in NOWHERE.refused(
        "user", "password", "bob", "--store", place, stdin="two\n"
    )


@pytest.mark.parametrize("place", ["memory:", "nowhere/server.properties", "http://here"])
def test_a_place_without_a_store_is_refused_with_the_kinds_there_are(place: str) -> None:
    """No store is made by a typing mistake."""
    assert "name a store's address" in NOWHERE.refused("user", "list", "--store", place)


def test_a_folder_of_other_things_is_no_store(tmp_path: Path) -> None:
    """The user would be made in a store that no broker reads; an empty folder may become one."""
    place = str(tmp_path)
    assert NOWHERE("user", "list", "--store", place, "-o", "json").json == []
    (tmp_path / "ottla-store.sqlite").unlink()
    (tmp_path / "notes.txt").touch()
    refusal = NOWHERE.refused("user", "add", "eve", "--store", place, stdin="secret\n")
    assert "it holds no store of `ottla start`" in refusal
    assert not (tmp_path / "ottla-store.sqlite").exists()


def test_a_settings_file_that_names_no_store_is_refused(tmp_path: Path) -> None:
    """Kafka's default would be a new store in /tmp, whose user could log in nowhere."""
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\n")
    said = NOWHERE.refused("user", "password", "alice", "--store", str(file), stdin="x\n")
    assert "the file names no store; set log.dirs or coordination.connect in it" in said
    assert "--data of `ottla start`" in said
