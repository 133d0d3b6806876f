"""Weak certificates, wrong clocks and wrong hosts: what the client gets, and the broker's line."""

import asyncio
import re
import ssl
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.errors import ConnectionFailed
from ottla.client.connection.blocking_connection import BlockingConnection
from ottla.client.connection.security import security_of
from ottla.client.connection.view import Address
from ottla.operations.certificates import issue, load_authority, make_development_files
from tests.integration.broker.broker_client import running, until
from tests.integration.broker.old_certificates import AUTHORITY, CLIENT
from tests.integration.broker.test_tls_listener import (
    NOW,
    client_of,
    client_side,
    count_of,
    run,
    settings,
)


@pytest.fixture
def files(tmp_path):
    return make_development_files(tmp_path / "certs", [], "alice", NOW)


def short_key(files):
    """A certificate of the authority for an RSA key of 1024 bits."""
    authority = load_authority(files.authority, files.authority_key)
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name.from_rfc4514_string("CN=alice")
    made = (
        x509.CertificateBuilder(authority.certificate.subject, name, key.public_key(), 7)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .sign(authority.key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem + made.public_bytes(Encoding.PEM)


def not_yet_valid(files):
    """As the clock of one machine has it that is a day ahead."""
    authority = load_authority(files.authority, files.authority_key)
    return issue(authority, "alice", NOW + timedelta(days=1)).pem


def signed_with_sha_1(files):
    """The broker trusts who signed it."""
    files.authority.write_text(files.authority.read_text() + AUTHORITY)
    return CLIENT.encode()


@pytest.mark.parametrize(
    ("made", "seen", "remedy"),
    [
        (short_key, "key too (weak|small)", r"use a key of 2048 bits \(RSA\) or more"),
        (signed_with_sha_1, "(digest algorithm|md) too weak", "have it signed with SHA-256"),
        (not_yet_valid, "not yet valid", "renew .*, and compare the clocks of both machines"),
    ],
)
def test_a_certificate_that_is_not_good_is_refused_on_both_sides(
    files, tmp_path, caplog, made, seen, remedy
):
    """The client gets an alert, and the line says what was seen and what to do."""
    own = tmp_path / "own.pem"
    own.write_bytes(made(files))

    async def scenario():
        async with running(settings(files, ssl_client_auth="required")) as broker:
            # A client that would use anything.
            context = client_side(files)
            context.set_ciphers("DEFAULT@SECLEVEL=0")
            context.load_cert_chain(own)
            with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
                async with client_of(broker.port, context) as client:
                    await client.reader.read(1)
            await until(lambda: count_of(broker) == 0)

    run(scenario)
    assert re.search(f"its certificate is not accepted .*{seen}.*: {remedy}", caplog.text)


def test_a_brokers_own_key_that_is_too_short_refuses_its_start(files):
    """With the file's name and what to make."""
    files.server.write_bytes(short_key(files))

    async def scenario():
        with pytest.raises(OttlaError, match="the key is too short to be safe: make one") as error:
            async with running(settings(files)):
                pass
        assert str(files.server) in error.value.message

    run(scenario)


@pytest.mark.parametrize("what", ["host", "authority"])
def test_our_client_refuses_another_brokers_certificate_with_kafkas_code(
    files, tmp_path, caplog, what
):
    """It is for another host, or of an authority that the client does not know."""
    strangers = make_development_files(tmp_path / "others", [], "alice", NOW)
    if what == "host":
        authority = load_authority(files.authority, files.authority_key)
        files.server.write_bytes(issue(authority, "x", NOW, hosts=["x.example"]).pem)
    trusted = files.authority if what == "host" else strangers.authority
    security = security_of(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
        }
    )

    async def scenario():
        async with running(settings(files)) as broker:
            address = Address("localhost", broker.port)
            with pytest.raises(ConnectionFailed) as failed:
                await asyncio.to_thread(BlockingConnection, address, "t", 60, security=security)
            assert failed.value.code is ErrorCode.NETWORK_EXCEPTION
            words = "is not for 'localhost': connect" if what == "host" else "set ssl.truststore.lo"
            assert words in failed.value.message
            await until(lambda: "does not accept this broker's certificate" in caplog.text)

    asyncio.run(scenario())
