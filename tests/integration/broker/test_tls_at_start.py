"""A broker starts though key stores and trust stores that were stored for it are gone."""

import asyncio
import logging
from datetime import timedelta

import pytest
from cryptography import x509

from ottla.base.errors import OttlaError
from ottla.broker.configs.configs import ResourceType
from ottla.coordination.memory.memory import MemoryStore
from ottla.operations.certificates import (
    issue,
    load_authority,
    make_development_files,
    new_authority,
)
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from tests.integration.broker.broker_client import running
from tests.integration.broker.test_tls_listener import NOW, _serial, client_side, run, settings


@pytest.fixture
def files(tmp_path):
    return make_development_files(tmp_path / "certs", [], "alice", NOW)


def _authority(files):
    return load_authority(files.authority, files.authority_key)


async def _restarted(files, stored, then, *, static=None):
    """A broker that has stored these settings, and starts again after `then`."""
    store, filesystem = MemoryStore(), MemoryFileSystem()
    given = settings(files) if static is None else static
    async with running(given, store=store, filesystem=filesystem) as broker:
        own = str(broker.parts.cluster.view.broker_id)
        await broker.parts.configs.configs.replace(
            ResourceType.BROKER, own, stored, validate_only=False
        )
    then()
    async with running(given, store=store, filesystem=filesystem) as broker:
        serial = await asyncio.to_thread(_serial, broker.port, client_side(files))
        held = dict(broker.settings.dynamic_broker)
        # Another change of the broker's settings does not bring the broken ones back.
        more = {**stored, "log.cleaner.threads": "2"}
        await broker.parts.configs.configs.replace(
            ResourceType.BROKER, own, more, validate_only=False
        )
        assert broker.settings.dynamic_broker == {**held, "log.cleaner.threads": "2"}
    return serial, held


def _serial_in(path):
    return format(x509.load_pem_x509_certificate(path.read_bytes()).serial_number, "X")


def test_a_stored_key_store_that_is_gone_does_not_keep_the_broker_from_starting(
    files, tmp_path, caplog
):
    """The file's key store is used, and an ERROR line names cause and remedy."""
    other = tmp_path / "other.pem"
    other.write_bytes(issue(_authority(files), "other", NOW, hosts=["localhost"]).pem)

    async def scenario():
        stored = {
            "listener.name.ssl.ssl.keystore.location": str(other),
            "ssl.client.auth": "requested",
        }
        serial, held = await _restarted(files, stored, other.unlink)
        assert int(serial, 16) == int(_serial_in(files.server), 16)
        assert held == {"ssl.client.auth": "requested"}

    run(scenario)
    (line,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert f"cannot read ssl.keystore.location {other}: No such file or directory" in line.message
    assert (
        "ottla config set broker 0 --unset listener.name.ssl.ssl.keystore.location" in line.message
    )


def test_a_stored_trust_store_that_is_gone_gives_way_to_the_one_of_the_file(
    files, tmp_path, caplog
):
    """Clients' certificates are still required."""
    other = tmp_path / "authority.pem"
    other.write_bytes(files.authority.read_bytes())

    async def scenario():
        stored = {"listener.name.ssl.ssl.truststore.location": str(other)}
        _, held = await _restarted(files, stored, other.unlink)
        assert held == {}

    run(scenario)
    assert "trust others" in caplog.text


def test_without_a_trust_store_in_the_file_a_stored_one_that_is_gone_refuses_the_start(
    files, tmp_path
):
    """Public authorities would take its place, which is less than was set."""
    other = tmp_path / "authority.pem"
    other.write_bytes(files.authority.read_bytes())
    static = settings(files)
    del static["ssl.truststore.location"]

    async def scenario():
        stored = {"listener.name.ssl.ssl.truststore.location": str(other)}
        with pytest.raises(OttlaError, match=r"name a usable one in server\.properties"):
            await _restarted(files, stored, other.unlink, static=static)

    run(scenario)


def test_a_start_warns_of_a_certificate_that_clients_may_refuse(files, caplog):
    """It is for another host than the advertised one, ends soon, and lacks who signed it."""
    stranger = new_authority("stranger", NOW)
    files.server.write_bytes(issue(stranger, "b", NOW, hosts=["x.example"], days=5).pem)

    async def scenario():
        advertised = {"advertised.listeners": "SSL://kafka.example:9093"}
        async with running({**settings(files), **advertised}):
            pass

    run(scenario)
    warned = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    for words in ("clients connect to kafka.example", "in 4 days", "CN=stranger, which signed it"):
        assert [words in each for each in warned if each.startswith("listener SSL: ")].count(True)


def test_a_start_says_that_a_certificate_is_not_valid_yet(files, caplog):
    """The clock of this machine may be wrong: the broker starts."""
    later = NOW + timedelta(days=1)
    files.server.write_bytes(issue(_authority(files), "b", later, hosts=["127.0.0.1"]).pem)

    async def scenario():
        async with running(settings(files)):
            pass

    run(scenario)
    lines = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    # As a listener, and as the client of other brokers.
    assert ["listener SSL: the certificate of CN=b is not valid yet" in one for one in lines] == [
        False,
        True,
    ]
    assert "mend this machine's clock" in lines[1]
