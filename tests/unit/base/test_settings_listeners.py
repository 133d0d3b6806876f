"""`listeners` and `advertised.listeners`."""

import pytest

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import (
    ListenerAddress,
    advertised_addresses,
    listen_addresses,
)


def listening(**named):
    return listen_addresses(BrokerSettings({k.replace("_", "."): v for k, v in named.items()}))


def refusal_of(function, static):
    with pytest.raises(OttlaError) as raised:
        function(BrokerSettings(static))
    return raised.value.message


def test_unset_listeners_are_kafkas():
    """Every interface, port 9092."""
    assert listening() == (ListenerAddress("PLAINTEXT", "", 9092),)


def test_several_listeners_with_names_hosts_and_ports():
    """IPv6 hosts stand in brackets; names are folded to upper case."""
    map_ = "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    settings = BrokerSettings(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0, inside://[::1]:9093",
            "listener.security.protocol.map": map_,
        }
    )
    assert listen_addresses(settings) == (
        ListenerAddress("PLAINTEXT", "127.0.0.1", 0),
        ListenerAddress("INSIDE", "::1", 9093),
    )


@pytest.mark.parametrize("entry", ["9092", "PLAINTEXT://host", "PLAINTEXT://:99999", "://:1"])
def test_an_entry_of_another_form_is_refused_with_the_form(entry):
    """The message shows how to write it."""
    assert "NAME://host:port" in refusal_of(listen_addresses, {"listeners": entry})


def test_a_listener_of_no_known_protocol_is_refused_and_never_opened_in_the_clear():
    """A name of its own must stand in listener.security.protocol.map."""
    message = refusal_of(listen_addresses, {"listeners": "TLS://:9093"})
    assert "SSL" in message
    assert "PLAINTEXT" in message


def test_a_name_given_twice_is_refused():
    """Answers go by the name of the listener."""
    assert "twice" in refusal_of(listen_addresses, {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"})


def test_nothing_is_advertised_unless_it_is_set():
    """Then clients are told the address they reached."""
    assert advertised_addresses(BrokerSettings()) == {}


def test_the_advertised_address_goes_by_the_name_of_its_listener():
    """Port 0 stands for the port reached."""
    settings = BrokerSettings({"advertised.listeners": "PLAINTEXT://kafka.example:0"})
    assert advertised_addresses(settings) == {
        "PLAINTEXT": ListenerAddress("PLAINTEXT", "kafka.example", 0)
    }


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_an_address_nobody_can_reach_is_not_advertised(host):
    """Kafka refuses 0.0.0.0 too."""
    message = refusal_of(advertised_addresses, {"advertised.listeners": f"PLAINTEXT://{host}:1"})
    assert "reach" in message


def test_only_listeners_there_are_can_be_advertised():
    """Else some clients would never get an answer."""
    message = refusal_of(advertised_addresses, {"advertised.listeners": "OUTSIDE://a:1"})
    assert "OUTSIDE" in message


def test_a_kafka_files_controller_listener_is_not_opened():
    """The server.properties that comes with Kafka 4 names one beside the broker's."""
    settings = BrokerSettings(
        {
            "process.roles": "broker,controller",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert listen_addresses(settings) == (ListenerAddress("PLAINTEXT", "", 9092),)
    assert advertised_addresses(settings) == {
        "PLAINTEXT": ListenerAddress("PLAINTEXT", "localhost", 9092)
    }
