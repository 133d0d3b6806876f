"""Commands at a port that wants other settings: the error says which, and at once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.probe import free_port

import ottla.testing
from ottla.base.settings import properties_text
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command


@pytest.fixture(scope="module")
def secured() -> Iterator[ottla.testing.Broker]:
    with ottla.testing.Broker(secure=True) as broker:
        yield broker


def test_a_port_of_tls_is_recognised_without_settings(
    secured: ottla.testing.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """In place of "the broker stopped": the option, and nothing of `ottla start`."""
    answer = CommandHere(secured.bootstrap).try_to("topic", "list", "-o", "json")
    assert answer.code == 1
    error = json.loads(answer.error)["error"]
    assert error["code"] == "NETWORK_EXCEPTION"
    assert error["message"] == f"{secured.bootstrap} closed the connection without an answer"
    assert error["remedy"] == (
        "if the port is one of TLS, give the client its settings with security.protocol=SSL or"
        " SASL_SSL: commands take `--config client.properties`, programs and commands"
        " OTTLA_CONFIG; else the broker's log says why"
    )
    assert "it sent no TLS to a TLS listener: set security.protocol=SSL" in caplog.text


def test_tls_to_a_port_without_it_is_recognised(
    secured: ottla.testing.Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The handshake ends; the remedy is in the settings."""
    settings = tmp_path / "client.properties"
    settings.write_text(properties_text(secured.login.for_java()))
    with ottla.testing.Broker() as plain:
        # A process of its own: the option stays in the environment.
        answer = Command(plain.bootstrap).try_to("topic", "list", "--config", str(settings))
        said = f"cannot connect to {plain.bootstrap}: the connection ended in the TLS handshake"
    assert answer.code == 1
    assert said in answer.error
    assert "a TLS handshake on a plaintext listener: set security.protocol=PLAIN" in caplog.text
    assert "set security.protocol=PLAINTEXT or SASL_PLAINTEXT in the client's" in answer.error
    assert "ottla start" not in answer.error


@pytest.mark.parametrize("words", [("topic", "list"), ("consume", "t")])
def test_a_port_with_logins_is_recognised_without_settings(words: tuple[str, ...]) -> None:
    """At once, and not when a minute of retries is over."""
    port, open_port = free_port(), free_port()
    settings = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{open_port}",
        "security.inter.broker.protocol": "PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with ottla.testing.Broker(settings=settings):
        error = CommandHere(f"127.0.0.1:{port}").refused(*words)
    assert "if clients must log in there, give the client its settings with" in error
    assert "security.protocol=SASL_PLAINTEXT" in error
