"""A TLS listener: who is let in, by which name, what bad clients get, and new certificates."""

import asyncio
import contextlib
import json
import logging
import os
import socket
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from rig.secret_search import register

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.alter import Alteration, AlterOperation
from ottla.base.settings.resolve import ConfigSource
from ottla.broker.configs.configs import ResourceType
from ottla.network.tls import source
from ottla.operations.certificates import (
    issue,
    load_authority,
    make_development_files,
    new_authority,
)
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.messages.api_versions import ApiVersionsRequest
from tests.integration.broker.broker_client import Client, running, until

NOW = datetime.now(UTC)
LOGINS = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="b" '
        'password="b";'
    ),
}


@pytest.fixture
def files(tmp_path):
    return make_development_files(tmp_path / "certs", [], "alice", NOW)


def settings(files, **more):
    return {
        "listeners": "SSL://127.0.0.1:0",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def client_side(files, own=None, version=None):
    context = ssl.create_default_context(cafile=str(files.authority))
    if own is not None:
        context.load_cert_chain(own)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


@asynccontextmanager
async def client_of(port, context, host="localhost"):
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=host
    )
    client = Client(reader, writer)
    try:
        yield client
    finally:
        client.close()


async def answer_of(port, context, host="localhost"):
    async with client_of(port, context, host) as client:
        return await asyncio.wait_for(client.call(ApiVersionsRequest(), 0), 60)


def connections(broker):
    return [c for listener in broker.serving.listeners.open for c in listener.connections]


def count_of(broker):
    return broker.parts.quotas.connections._count


def run(scenario):
    asyncio.run(scenario())


def test_versions_1_2_and_1_3_are_served(files):
    """And the connection answers requests."""

    async def scenario():
        async with running(settings(files)) as broker:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                answer = await answer_of(broker.port, client_side(files, version=version))
                assert answer.error_code == 0

    run(scenario)


@pytest.mark.parametrize(
    ("own", "auth", "name"),
    [
        (True, "required", "User:CN=alice"),
        (True, "requested", "User:CN=alice"),
        (False, "requested", "User:ANONYMOUS"),
        (True, "none", "User:ANONYMOUS"),
    ],
)
def test_a_client_is_who_its_certificate_says(files, own, auth, name):
    """Without a certificate, where one is only requested, it is ANONYMOUS."""

    async def scenario():
        async with running(settings(files, ssl_client_auth=auth)) as broker:
            context = client_side(files, files.client if own else None)
            async with client_of(broker.port, context) as client:
                await client.call(ApiVersionsRequest(), 0)
                assert [str(c.principal) for c in connections(broker)] == [name]

    run(scenario)


@pytest.mark.parametrize(("own", "count"), [(True, 1), (False, 0)])
def test_a_certificate_is_a_login_in_the_audit_log(files, own, count):
    """As one by SASL, where audit.log.logins.enable has logins that succeed in the log."""
    wanted = settings(
        files,
        ssl_client_auth="requested",
        audit_log_enable="true",
        audit_log_logins_enable="true",
        audit_log_dir="/audit",
    )
    filesystem = MemoryFileSystem()

    async def scenario():
        async with running(wanted, filesystem=filesystem) as broker:
            context = client_side(files, files.client if own else None)
            async with client_of(broker.port, context) as client:
                await client.call(ApiVersionsRequest(), 0)

    run(scenario)
    text = b"".join(
        filesystem.read_bytes(f"/audit/{name}") for name in filesystem.listdir("/audit")
    )
    lines = [json.loads(line) for line in text.splitlines() if b'"login"' in line]
    found = [(line["principal"], line["mechanism"]) for line in lines]
    assert found == [("User:CN=alice", "SSL")] * count


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_resumed_session_ends_with_its_certificate(files, caplog, monkeypatch, protocol):
    """A handshake that resumes a session of TLS 1.2 verifies no certificate."""

    def shake(port, context, session=None):
        with (
            socket.create_connection(("127.0.0.1", port), 60) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as client,
        ):
            client.sendall(bytes.fromhex("0000000b 0012 0000 00000001 0001 78"))
            found = client.session, client.session_reused, bool(client.recv(1))
            # OpenSSL forgets a session that ends in another way.
            with contextlib.suppress(OSError):
                client.recv(65536)
                client.unwrap()
            return found

    async def scenario():
        more = {
            "listeners": f"{protocol}://127.0.0.1:0",
            "inter.broker.listener.name": protocol,
            f"listener.name.{protocol.lower()}.ssl.client.auth": "required",
            **({} if protocol == "SSL" else LOGINS),
        }
        async with running({**settings(files), **more}) as broker:
            context = client_side(files, files.client, ssl.TLSVersion.TLSv1_2)
            session, *first = await asyncio.to_thread(shake, broker.port, context)
            _, *second = await asyncio.to_thread(shake, broker.port, context, session)
            assert (first, second) == ([False, True], [True, True])
            later = NOW + timedelta(days=4000)
            monkeypatch.setattr("ottla.network.tls_security._now", lambda: later)
            assert not (await asyncio.to_thread(shake, broker.port, context, session))[2]

    run(scenario)
    assert "its certificate expired" in caplog.text


def test_mapping_rules_make_the_name(files):
    """And a name that no rule matches is not let in."""

    async def scenario():
        rules = {"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:CN=(.*)/$1/U"}
        async with (
            running(settings(files, **rules)) as broker,
            client_of(broker.port, client_side(files, files.client)) as client,
        ):
            await client.call(ApiVersionsRequest(), 0)
            assert [str(c.principal) for c in connections(broker)] == ["User:ALICE"]

    run(scenario)


def test_a_name_that_no_rule_matches_is_not_let_in(files, caplog):
    """The log names it, and the remedy."""

    async def scenario():
        rules = {"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:OU=(.*)/$1/"}
        async with (
            running(settings(files, **rules)) as broker,
            client_of(broker.port, client_side(files, files.client)) as client,
        ):
            assert await client.is_closed()

    run(scenario)
    assert "no rule of ssl.principal.mapping.rules matches the name 'CN=alice'" in caplog.text


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"\0\0\0\x0e\0\x12\0\0\0\0\0\x01\0\x04test", "it sent no TLS to a TLS listener"),
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"),
    ],
)
def test_other_bytes_than_tls_end_the_connection_and_are_explained(files, caplog, sent, words):
    """At once, and counted out again."""

    async def scenario():
        async with running(settings(files)) as broker:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            writer.write(sent)
            assert await reader.read(100) == b""
            writer.close()
            await until(lambda: count_of(broker) == 0)

    run(scenario)
    assert words in caplog.text


def strange_certificate(files, tmp_path, what):
    """The path of a client's certificate that is not to be accepted."""
    authority = new_authority("stranger", NOW)
    made = {
        "expired": lambda: issue(_authority(files), "alice", NOW, days=-2),
        "unknown": lambda: issue(authority, "alice", NOW),
        "self-signed": lambda: authority,
    }[what]()
    path = tmp_path / "strange.pem"
    path.write_bytes(made.pem)
    return path


def _authority(files):
    return load_authority(files.authority, files.authority_key)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("expired", "certificate has expired"),
        ("unknown", "have it signed by an authority in this broker's ssl.truststore.location"),
        ("self-signed", "self-signed certificate"),
        ("none", "it has no certificate, and ssl.client.auth=required"),
    ],
)
def test_bad_certificates_get_the_alert_and_a_line(files, tmp_path, caplog, what, words, version):
    """The alert must leave before the connection ends, or clients report a broken network."""
    own = None if what == "none" else strange_certificate(files, tmp_path, what)

    async def scenario():
        async with running(settings(files, ssl_client_auth="required")) as broker:
            with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
                async with client_of(broker.port, client_side(files, own, version)) as client:
                    await client.reader.read(1)
            await until(lambda: count_of(broker) == 0)

    run(scenario)
    assert words in caplog.text


def test_a_client_that_refuses_the_brokers_certificate_is_explained(files, tmp_path, caplog):
    """Its alert names why; the remedy is on either side."""
    stranger = make_development_files(tmp_path / "others", [], "alice", NOW)

    async def scenario():
        async with running(settings(files)) as broker:
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.to_thread(_serial, broker.port, client_side(stranger))
            await until(lambda: count_of(broker) == 0)

    run(scenario)
    assert "it does not accept this broker's certificate" in caplog.text


def test_connections_count_before_their_handshake(files):
    """One that says nothing takes a place of max.connections.per.ip, until the time is over."""

    async def scenario():
        async with running(settings(files, max_connections_per_ip="1")) as broker:
            silent = await asyncio.open_connection("127.0.0.1", broker.port)
            await until(lambda: count_of(broker) == 1)
            with pytest.raises(ConnectionError):
                await answer_of(broker.port, client_side(files))
            silent[1].close()
            await until(lambda: count_of(broker) == 0)
            assert (await answer_of(broker.port, client_side(files))).error_code == 0

    run(scenario)


def test_a_handshake_has_a_limit_of_time(files, caplog, monkeypatch):
    """A client that stalls in the middle is closed and counted out."""
    monkeypatch.setattr("ottla.network.tls_acceptor.HANDSHAKE_TIMEOUT_S", 0.2)

    async def scenario():
        async with running(settings(files)) as broker:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            writer.write(b"\x16\x03\x01\x02\x00\x01")
            assert await reader.read(1) == b""
            writer.close()
            await until(lambda: count_of(broker) == 0)

    run(scenario)
    assert "was not done in time" in caplog.text


def test_stopping_does_not_wait_for_a_handshake(files):
    """It is given up."""

    async def scenario():
        async with running(settings(files)) as broker:
            _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            await until(lambda: count_of(broker) == 1)
            quotas = broker.parts.quotas.connections
        await until(lambda: quotas._count == 0)
        writer.close()

    run(scenario)


def _serial(port, context):
    plain = socket.create_connection(("127.0.0.1", port))
    with context.wrap_socket(plain, server_hostname="localhost") as end:
        return end.getpeercert()["serialNumber"]


def test_changed_certificates_serve_new_connections_and_broken_ones_are_refused(
    files, caplog, monkeypatch
):
    """The former stay until the new ones can be used; open connections go on."""
    monkeypatch.setattr(source, "_LOOK_S", 0.0)
    caplog.set_level(logging.INFO)

    async def scenario():
        async with running(settings(files)) as broker:
            context = client_side(files)

            async def serial():
                return await asyncio.to_thread(_serial, broker.port, context)

            async with client_of(broker.port, context) as client:
                first = await serial()
                good = files.server.read_bytes()
                _replace(files.server, b"-----BEGIN PRIVATE KEY-----\nrubbish\n")
                assert await serial() == first
                assert "the former ones stay" in caplog.text
                _replace(files.server, issue(_authority(files), "x", NOW, days=-2).pem)
                assert await serial() == first
                assert "expired" in caplog.text
                _replace(files.server, issue(_authority(files), "x", NOW, hosts=["localhost"]).pem)
                second = await serial()
                assert second != first
                _replace(files.server, good)
                assert await serial() == first
                assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0

    run(scenario)


def _replace(path, data):
    new = path.with_suffix(".new")
    new.write_bytes(data)
    os.replace(new, path)


def test_a_listener_without_a_key_store_is_refused(files):
    """Before anything is opened; the remedy is named."""

    async def scenario():
        broken = settings(files)
        del broken["ssl.keystore.location"]
        with pytest.raises(OttlaError, match=r"ssl\.keystore\.location"):
            async with running(broken):
                pass

    run(scenario)


def test_users_of_certificates_and_failed_handshakes_are_counted(files, caplog):
    """One connection more than its user may have is closed; a client without TLS is a failure."""

    async def scenario():
        more = {"ssl_client_auth": "required", "max_connections_per_user": "1"}
        async with running(settings(files, **more)) as broker:
            failing = broker.parts.quotas.connections.failing
            context = client_side(files, files.client)
            async with client_of(broker.port, context) as client:
                await client.call(ApiVersionsRequest(), 0)
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await answer_of(broker.port, context)
            await until(lambda: count_of(broker) == 0)
            assert (await answer_of(broker.port, context)).error_code == 0
            assert not failing._addresses
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            writer.write(b"no TLS at all")
            await reader.read()
            writer.close()
            await until(lambda: failing._addresses)

    run(scenario)
    assert "its user CN=alice already has max.connections.per.user (1) of them" in caplog.text


def test_a_handshake_that_is_given_up_is_a_failure(files):
    """It costs as much as one that fails: new connections of its address may have to wait."""

    async def scenario():
        async with running(settings(files)) as broker:
            failing = broker.parts.quotas.connections.failing
            _reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            hello = client_side(files).wrap_bio(incoming, outgoing, server_hostname="localhost")
            with pytest.raises(ssl.SSLWantReadError):
                hello.do_handshake()
            writer.write(outgoing.read())
            await writer.drain()
            writer.close()
            await until(lambda: failing._addresses)

    run(scenario)


def test_a_key_store_that_cannot_be_used_is_not_stored(files, tmp_path):
    """The broker would go on with the former one, and not start again."""

    async def scenario():
        async with running(settings(files)) as broker:
            configs, own = broker.parts.configs.configs, str(broker.parts.cluster.view.broker_id)

            async def change(path):
                new = {"listener.name.ssl.ssl.keystore.location": path}
                await configs.replace(ResourceType.BROKER, own, new, validate_only=False)

            with pytest.raises(OttlaError, match="No such file") as refused:
                await change(str(tmp_path / "nowhere.pem"))
            assert refused.value.code == ErrorCode.INVALID_REQUEST
            with pytest.raises(OttlaError, match="has a certificate and no private key"):
                await change(str(files.authority))
            await change(str(files.server))

    run(scenario)


def revoking(authority, serials, days=1):
    """A list of an authority, as PEM."""
    builder = x509.CertificateRevocationListBuilder(
        issuer_name=authority.certificate.subject,
        last_update=NOW - timedelta(days=2),
        next_update=NOW + timedelta(days=days),
        revoked_certificates=[
            x509.RevokedCertificateBuilder(serial, NOW - timedelta(days=2)).build()
            for serial in serials
        ],
    )
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize(("days", "words"), [(1, "certificate revoked"), (-1, "CRL has expired")])
def test_a_revoked_certificate_is_refused_by_new_connections(files, caplog, days, words):
    """As soon as the trust store has the authority's list; a list that has expired refuses all."""
    authority = load_authority(files.authority, files.authority_key)
    revoked = x509.load_pem_x509_certificate(files.client.read_bytes()).serial_number
    other = files.client.with_name("other.pem")
    other.write_bytes(issue(authority, "other", NOW, hosts=["localhost"]).pem)
    trusted = files.authority.with_name("trusted.pem")
    trusted.write_bytes(files.authority.read_bytes())

    async def scenario():
        more = {"ssl_client_auth": "required", "ssl_truststore_location": str(trusted)}
        async with running(settings(files, **more)) as broker:
            context = client_side(files, files.client)
            assert (await answer_of(broker.port, context)).error_code == 0
            with trusted.open("ab") as store:
                store.write(revoking(authority, [revoked], days))
            for listener in broker.serving.listeners.open:
                listener._tls._source.refresh()
            with pytest.raises((asyncio.IncompleteReadError, OSError)):
                await answer_of(broker.port, context)
            await until(lambda: words in caplog.text)
            if days > 0:
                context = client_side(files, other)
                assert (await answer_of(broker.port, context)).error_code == 0

    run(scenario)


def test_a_listener_takes_another_certificate_while_the_broker_runs(files, tmp_path):
    """KIP-226: by its own names. Those of all listeners are refused, as by Kafka."""
    other = tmp_path / "other.pem"
    authority = load_authority(files.authority, files.authority_key)
    other.write_bytes(issue(authority, "other", NOW, hosts=["localhost", "127.0.0.1"]).pem)
    name = "listener.name.ssl.ssl.keystore.location"

    async def scenario():
        async with running(settings(files)) as broker:
            configs, own = broker.parts.configs.configs, str(broker.parts.cluster.view.broker_id)
            before = await asyncio.to_thread(_subject, broker.port, files)
            for broker_id, wanted, why in (
                (own, "ssl.keystore.location", "only per-listener using the listener prefix"),
                ("", name, "at the cluster level"),
                (own, "listener.name.ssl.ssl.keystore.locatoin", "ssl.keystore.location"),
                (own, "listener.name.nope.ssl.keystore.location", "and listeners has ssl"),
                (own, "listener.name.SSL.ssl.keystore.location", "names are in small letters"),
            ):
                change = [Alteration(wanted, AlterOperation.SET, str(other))]
                with pytest.raises(OttlaError, match=why):
                    await configs.alter(ResourceType.BROKER, broker_id, change, validate_only=False)
            new = {name: str(other)}
            await configs.replace(ResourceType.BROKER, own, new, validate_only=False)
            (described,) = [
                one
                for one in configs.describe(ResourceType.BROKER, own)
                if one.setting.name == name
            ]
            assert (described.value, described.source) == (
                str(other),
                ConfigSource.DYNAMIC_BROKER_CONFIG,
            )
            for tls in broker.serving.listeners.open:
                tls._tls._source.refresh()
            after = await asyncio.to_thread(_subject, broker.port, files)
            assert (before == after, "other" in after) == (False, True)
            removal = [Alteration(name, AlterOperation.DELETE, None)]
            await configs.alter(ResourceType.BROKER, own, removal, validate_only=False)
            for tls in broker.serving.listeners.open:
                tls._tls._source.refresh()
            assert await asyncio.to_thread(_subject, broker.port, files) == before

    run(scenario)


def _subject(port, files):
    """Of the certificate that the broker shows."""
    context = client_side(files)
    context.check_hostname = False
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain) as connection,
    ):
        return str(connection.getpeercert()["subject"])


def test_a_secret_that_is_changed_is_not_in_the_log(files, caplog):
    """The line about a change has the names of all settings."""
    secret = "a-password-of-a-key"
    register(secret)
    caplog.set_level(logging.INFO)

    async def scenario():
        async with running(settings(files)) as broker:
            own = str(broker.parts.cluster.view.broker_id)
            prefix = "listener.name.ssl.ssl."
            new = {prefix + "key.password": secret, prefix + "keystore.location": str(files.server)}
            configs = broker.parts.configs.configs
            await configs.replace(ResourceType.BROKER, own, new, validate_only=False)

    run(scenario)
    assert "'listener.name.ssl.ssl.key.password': '(hidden)'" in caplog.text
    assert secret not in caplog.text
