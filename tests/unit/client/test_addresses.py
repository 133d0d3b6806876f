"""Bootstrap addresses as people write them."""

import pytest

from ottla.client.common.errors import ClientError
from ottla.client.connection.view import Address, parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("::1", [("::1", 9092)]),
        ("PLAINTEXT://h:9", [("h", 9)]),
        (["a:1", "b"], [("a", 1), ("b", 9092)]),
    ],
)
def test_hosts_ports_and_lists_are_read(text, addresses) -> None:
    """The port is 9092 unless it is said."""
    assert parse_bootstrap(text) == tuple(Address(*address) for address in addresses)


@pytest.mark.parametrize("text", ["", " , ", ":9092", "h:port", "h:70000"])
def test_what_is_no_address_is_refused_with_the_form(text) -> None:
    """The error shows how to write one."""
    with pytest.raises(ClientError, match="host:port"):
        parse_bootstrap(text)


@pytest.mark.parametrize("text", ["alice:hidden@h:9092", "SASL_SSL://alice:hid/hidden@h"])
def test_a_password_in_an_address_is_refused_and_not_repeated(text) -> None:
    """The error says where it belongs."""
    with pytest.raises(ClientError, match="--config") as refused:
        parse_bootstrap(text)
    assert "hidden" not in refused.value.message


def test_addresses_print_as_they_are_written() -> None:
    """IPv6 in brackets."""
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("h", 1)) == "h:1"
