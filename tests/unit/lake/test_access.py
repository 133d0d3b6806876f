"""How driver and tasks are let into a cluster: a file's path, and options of a DataFrame."""

import pickle
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.edges.sink_options import sink_options
from ottla.lake.source.access import ClientAccess, brokers_of, found_here
from ottla.lake.source.source_options import parse_options

SECRET = "hunter2"
OPTIONS = {
    "config": "/etc/client.properties",
    "kafka.bootstrap.servers": "host:9093",
    "kafka.sasl.jaas.config": f'x required password="{SECRET}";',
    "kafka.ssl.keystore.key": SECRET,
}


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_CONFIG", raising=False)


def test_options_in_kafkas_names_are_taken_by_source_and_sink() -> None:
    """As people write them for Spark's own connector."""
    for parsed in (parse_options(OPTIONS | {"subscribe": "t"}), sink_options(OPTIONS)):
        assert parsed.bootstrap == "host:9093"
        assert parsed.access == ClientAccess(
            "/etc/client.properties",
            {
                "sasl.jaas.config": OPTIONS["kafka.sasl.jaas.config"],
                "ssl.keystore.key": SECRET,
            },
        )
        assert SECRET not in repr(parsed)
        assert pickle.loads(pickle.dumps(parsed)) == parsed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sasl.jaas.config", "there is no option 'sasl.jaas.config'"),
        ("kafka.security.protocl", "did you mean security.protocol"),
        ("kafka.sasl.jaas.conf", "did you mean sasl.jaas.config"),
        ("kafka.ssl.ca.location", "write ssl.truststore.type=PEM"),
    ],
)
def test_other_options_are_refused_without_their_values(name: str, words: str) -> None:
    """A mistyped security.protocol would read without TLS."""
    for parse in (parse_options, sink_options):
        with pytest.raises(OttlaError, match=words) as error:
            parse({name: SECRET})
        assert SECRET not in error.value.message


def test_other_settings_of_kafkas_clients_are_accepted() -> None:
    """As Spark's own connector has them; they have no effect."""
    options = {"kafka.group.id": "audit", "kafka.fetch.max.bytes": "1"}
    for parsed in (parse_options(options | {"subscribe": "t"}), sink_options(options)):
        assert parsed.access.settings == {"group.id": "audit", "fetch.max.bytes": "1"}


def test_options_overrule_the_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nssl.truststore.type=PEM\n")
    access = ClientAccess(str(path), {"security.protocol": "SASL_SSL"})
    assert access.client_config() == {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
    }


def test_without_anything_clients_look_into_their_environment() -> None:
    assert ClientAccess().client_config() is None


def test_a_task_reads_the_drivers_file_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else that of its own environment."""
    there, own = tmp_path / "there", tmp_path / "own"
    there.touch()
    monkeypatch.setenv("OTTLA_CONFIG", str(own))
    assert ClientAccess(str(there)).client_config() == str(there)
    assert found_here("/nowhere/client.properties") == str(own)
    monkeypatch.delenv("OTTLA_CONFIG")
    assert found_here("/nowhere/client.properties") == "/nowhere/client.properties"


def test_brokers_have_the_settings_of_a_call_else_those_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is the driver's, wherever tasks run; no secret is shown."""
    monkeypatch.setenv("OTTLA_CONFIG", str(tmp_path / "own"))
    assert brokers_of("b:1").access == ClientAccess(str(tmp_path / "own"))
    given = brokers_of("b:1", str(tmp_path / "mine"), {"sasl.password": "hunter2"})
    assert given.access.config == str(tmp_path / "mine")
    assert "hunter2" not in repr(given)
    with pytest.raises(OttlaError, match=r"security\.protocol"):
        brokers_of("b:1", client={"security.protocl": "SSL"})


def test_a_missing_file_is_named_with_its_machine() -> None:
    """On which of the workers it is missing is what a person needs to know."""
    with pytest.raises(OttlaError, match=r"/nowhere/x cannot be read on \S+: No such file"):
        ClientAccess("/nowhere/x", {"group.id": "g"}).client_config()
