"""Kafka's `ssl.*` settings: what they mean, and how unusable keys and certificates are refused."""

import contextlib
import os
import ssl
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    pkcs12,
)
from rig.secret_search import register

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.network.tls.context import client_context, server_context
from ottla.network.tls.material import load_material
from ottla.network.tls.options import client_options, listener_options, pem_of
from ottla.network.tls.source import client_source, server_source
from ottla.operations.certificates import issue, new_authority

NOW = datetime.now(UTC)
AUTHORITY = new_authority("authority", NOW)
SERVER = issue(AUTHORITY, "server", NOW, hosts=["localhost"])
PASSWORD = "a-secret-of-the-store"
register(PASSWORD)
CERTIFICATE = b"-----BEGIN CERT" + SERVER.pem.partition(b"-----BEGIN CERT")[2]
ENCRYPTED = CERTIFICATE + SERVER.key.private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode())
)


def store(folder, data, name="store"):
    path = folder / name
    path.write_bytes(data)
    return str(path)


def p12(issued=SERVER, password=PASSWORD):
    encryption = BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(
        b"own", issued.key, issued.certificate, [AUTHORITY.certificate], encryption
    )


def server_of(**settings):
    named = {name.replace("_", "."): value for name, value in settings.items()}
    options = listener_options(BrokerSettings(named), "SSL", is_sasl=False)
    return server_context(options, load_material(options))


def refusal(**settings):
    with pytest.raises(OttlaError) as raised:
        server_of(**settings)
    assert PASSWORD not in raised.value.message
    return raised.value.message


def test_a_pem_file_holds_key_and_chain(tmp_path):
    """As Kafka has it: one file."""
    assert (
        server_of(
            ssl_keystore_type="PEM", ssl_keystore_location=store(tmp_path, SERVER.pem)
        ).get_ca_certs()
        == []
    )


def test_a_pkcs12_file_is_opened_by_its_password(tmp_path):
    """Also where the type is left out, as Java reads such a file under its default type."""
    path = store(tmp_path, p12())
    server_of(
        ssl_keystore_type="PKCS12", ssl_keystore_location=path, ssl_keystore_password=PASSWORD
    )
    server_of(ssl_keystore_location=path, ssl_keystore_password=PASSWORD)


def test_pem_may_stand_in_the_settings_themselves():
    """On one line, as Kafka's documentation shows it."""
    key, _, chain = SERVER.pem.decode().partition("-----BEGIN CERTIFICATE")
    server_of(
        ssl_keystore_type="PEM",
        ssl_keystore_key=key.replace("\n", " "),
        ssl_keystore_certificate_chain=f"-----BEGIN CERTIFICATE{chain}".replace("\n", "\\n"),
    )


def test_lines_of_pem_are_found_again():
    """Blanks in the words of the frame are kept."""
    assert pem_of("-----BEGIN EC KEY----- YWI= Y2Q= -----END EC KEY-----") == (
        "-----BEGIN EC KEY-----\nYWI=\nY2Q=\n-----END EC KEY-----"
    )


def test_jks_is_refused_with_the_command_that_converts_it(tmp_path):
    """Only Java reads it."""
    path = store(tmp_path, b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    assert f"keytool -importkeystore -srckeystore {path}" in refusal(ssl_keystore_location=path)


@pytest.mark.parametrize(
    ("data", "settings", "words"),
    [
        (p12(), {"ssl_keystore_password": "wrong"}, "ssl.keystore.password is wrong"),
        (p12(), {"ssl_keystore_type": "PEM"}, "holds no PEM"),
        (SERVER.pem, {"ssl_keystore_type": "PKCS12"}, "ssl.keystore.type=PEM"),
        (SERVER.pem, {"ssl_keystore_password": PASSWORD}, "does not go with PEM"),
        (b"rubbish", {}, "neither PEM nor PKCS#12"),
        (AUTHORITY.pem.partition(b"-----BEGIN CERT")[0], {}, "has a key and no certificate"),
        (CERTIFICATE, {}, "has a certificate and no private key"),
        (ENCRYPTED, {}, "set ssl.key.password"),
        (ENCRYPTED, {"ssl_key_password": "wrong"}, "ssl.key.password is wrong"),
        (SERVER.pem, {"ssl_client_auth": "required"}, "ssl.truststore.location"),
        (SERVER.pem, {"ssl_cipher_suites": "TLS_NO_SUCH"}, "ssl.cipher.suites"),
        (SERVER.pem, {"ssl_enabled_protocols": "TLSv1.1"}, "TLSv1.2"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_remedy(tmp_path, data, settings, words):
    """At start; and no password is in the message."""
    path = store(tmp_path, data)
    message = refusal(ssl_keystore_location=path, **settings)
    assert words in message
    # Of several key stores the one that is meant.
    assert not words.startswith(("ssl.key.", "ssl.keystore.p")) or path in message


def test_a_trust_store_with_a_key_alone_is_named(tmp_path):
    """The two files are easily mistaken for each other."""
    trusted = store(tmp_path, SERVER.pem.partition(b"-----BEGIN CERT")[0], "trust")
    message = refusal(
        ssl_keystore_location=store(tmp_path, SERVER.pem),
        ssl_client_auth="required",
        ssl_truststore_location=trusted,
    )
    assert f"ssl.truststore.location {trusted} holds no certificate" in message


@pytest.mark.parametrize("of_keys", [True, False])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("pipe", "it is not a regular file"),
        ("device", "it is not a regular file"),
        ("folder", "it is not a regular file"),
        ("large", "it has more than 1048576 bytes"),
    ],
)
def test_a_store_is_a_regular_file_of_bounded_size(tmp_path, kind, why, of_keys):
    """A client may name it while the broker runs: no pipe stops it, and no device fills memory."""
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = "/dev/zero"
    else:
        path.write_bytes(SERVER.pem + bytes(10 << 20))
    stores = {"ssl_keystore_location": store(tmp_path, SERVER.pem)}
    name = "ssl_keystore_location" if of_keys else "ssl_truststore_location"
    message = refusal(**{**stores, name: str(path)}, ssl_client_auth="required")
    assert message == f"cannot read {name.replace('_', '.')} {path}: {why}"


def test_a_key_of_another_certificate_is_named(tmp_path):
    """The commonest mistake after a renewal."""
    other = issue(AUTHORITY, "other", NOW)
    mixed = other.pem.partition(b"-----BEGIN CERT")[0] + SERVER.pem.partition(b"-----END")[2]
    message = refusal(ssl_keystore_location=store(tmp_path, mixed + SERVER.pem))
    assert f"ssl.keystore.location {tmp_path}/" in message
    assert "cannot be used: key values mismatch" in message


def test_a_listener_has_settings_of_its_own(tmp_path):
    """`listener.name.<name in small letters>.ssl.…` comes before `ssl.…`."""
    settings = BrokerSettings(
        {
            "ssl.client.auth": "required",
            "ssl.keystore.location": "/for/all",
            "listener.name.outside.ssl.client.auth": "none",
            "listener.name.outside.ssl.keystore.location": "/for/outside",
        }
    )
    outside = listener_options(settings, "OUTSIDE", is_sasl=False)
    assert (outside.client_auth, outside.files) == ("none", ("/for/outside",))
    inside = listener_options(settings, "INSIDE", is_sasl=False)
    assert (inside.client_auth, inside.files) == ("required", ("/for/all",))


def test_a_sasl_listener_asks_for_certificates_only_by_its_own_setting():
    """As in Kafka (KIP-684)."""
    settings = BrokerSettings(
        {"ssl.client.auth": "required", "listener.name.both.ssl.client.auth": "requested"}
    )
    assert listener_options(settings, "SASL_SSL", is_sasl=True).client_auth == "none"
    assert listener_options(settings, "BOTH", is_sasl=True).client_auth == "requested"


def test_an_unknown_setting_of_a_listener_is_refused():
    """A typing error must not leave a listener less secure than its owner thinks."""
    with pytest.raises(OttlaError, match=r"ssl\.client\.auht"):
        BrokerSettings({"listener.name.ssl.ssl.client.auht": "required"})


def test_suites_have_the_names_of_the_standards(tmp_path):
    """Java's names; without one of TLS 1.3 that version is off."""
    context = server_of(
        ssl_keystore_location=store(tmp_path, SERVER.pem),
        ssl_cipher_suites=(
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384,"
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
        ),
    )
    older = {suite["name"] for suite in context.get_ciphers() if suite["protocol"] == "TLSv1.2"}
    assert older == {
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES256-SHA384",
        "ECDHE-RSA-CHACHA20-POLY1305",
    }
    assert context.maximum_version.name == "TLSv1_2"


def test_a_client_checks_host_names_unless_the_algorithm_is_empty():
    """ssl.endpoint.identification.algorithm, https by default."""

    def checks(**properties):
        options = client_options({k.replace("_", "."): v for k, v in properties.items()})
        return client_context(options, load_material(options)).check_hostname

    assert checks()
    assert not checks(ssl_endpoint_identification_algorithm="")


def test_no_secret_is_in_the_text_of_options_or_material(tmp_path):
    """They may come into a traceback or a log."""
    options = client_options(
        {
            "ssl.keystore.location": store(tmp_path, p12()),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        }
    )
    shown = f"{options!r} {load_material(options)!r}"
    assert PASSWORD not in shown
    assert "PRIVATE KEY" not in shown


def test_a_key_that_others_may_read_is_warned_of_by_a_listener_alone(tmp_path, caplog):
    """Again with each new key; a client says nothing, and of a private key nothing is said."""
    path = tmp_path / "server.pem"
    path.write_bytes(SERVER.pem)
    path.chmod(0o600)
    named = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": AUTHORITY.certificate.public_bytes(Encoding.PEM).decode(),
    }
    client_source("this client", lambda: client_options(named))
    settings = BrokerSettings(named)
    source = server_source("SSL", lambda: listener_options(settings, "SSL", is_sasl=False), [])
    assert caplog.messages == []
    path.chmod(0o644)
    assert not source.refresh()
    path.write_bytes(issue(AUTHORITY, "server", NOW, hosts=["localhost"]).pem)
    assert source.refresh()
    client_source("this client", lambda: client_options(named))
    (line,) = caplog.messages
    assert line == (
        f"SSL: other users of this machine may read the private key in {path} (mode 0644): run"
        " `chmod 600` on it, and replace the key if they may have read it"
    )


def test_a_certificate_that_stays_is_judged_once_a_day(tmp_path, caplog):
    """A broker that runs for months says when its certificate is about to end."""
    path = tmp_path / "server.pem"
    path.write_bytes(issue(AUTHORITY, "server", NOW, hosts=["localhost"], days=20).pem)
    path.chmod(0o600)
    settings = BrokerSettings(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(path),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": AUTHORITY.certificate.public_bytes(
                Encoding.PEM
            ).decode(),
        }
    )
    source = server_source("SSL", lambda: listener_options(settings, "SSL", is_sasl=False), [])
    for now_s in (86_400, 86_410, 172_790, 172_810, 200_000, 259_300):
        source.newest(now_s)
    assert [message.split(" UTC")[0].split(" expires ")[0] for message in caplog.messages] == [
        "SSL: the certificate of CN=server"
    ] * 3


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_of_clients_with_certificates_take_no_memory(tmp_path, version):
    """OpenSSL would keep thousands, each with the client's certificate."""
    own, trusted = store(tmp_path, SERVER.pem), store(tmp_path, AUTHORITY.pem, "trusted")
    stores = {"ssl_keystore_location": own, "ssl_truststore_location": trusted}
    context = server_of(
        **stores, ssl_keystore_type="PEM", ssl_truststore_type="PEM", ssl_client_auth="required"
    )
    side = ssl.create_default_context(cafile=trusted)
    side.load_cert_chain(own)
    side.maximum_version = version
    out, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = side.wrap_bio(back, out, server_hostname="localhost")
    server = context.wrap_bio(out, back, server_side=True)
    for end in (client, server, client, server, client):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert (server.version(), context.session_stats()["number"]) == (client.version(), 0)
    assert server.getpeercert(binary_form=True)
