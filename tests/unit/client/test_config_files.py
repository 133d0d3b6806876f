"""Files with a client's settings, as people and editors leave them."""

from pathlib import Path

from ottla.client.connection.security import read_config


def test_an_editors_byte_order_mark_does_not_hide_the_first_setting(tmp_path: Path) -> None:
    """It hid security.protocol, and the client spoke without TLS."""
    file = tmp_path / "client.properties"
    file.write_bytes(b"\xef\xbb\xbfsecurity.protocol=SSL\r\nssl.truststore.type=PEM\r\n")
    assert read_config(str(file)) == {"security.protocol": "SSL", "ssl.truststore.type": "PEM"}
