"""`ottla certs dev`: a broker and a client with TLS from the files that it makes."""

import asyncio
import ssl
import stat

import pytest
from click.testing import CliRunner
from cryptography import x509

from ottla.base.settings import BrokerSettings, parse_properties
from ottla.broker.process.broker import Broker
from ottla.cli.command import cli
from ottla.network.tls.context import client_context
from ottla.network.tls.material import load_material
from ottla.network.tls.options import client_options
from ottla.operations.certificates import hosts_of
from ottla.storage.disk.memory_filesystem import MemoryFileSystem


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "certs"


def make(folder, *arguments):
    done = CliRunner().invoke(cli, ["certs", "dev", "--dir", str(folder), *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_its_settings_start_a_broker_that_its_client_reaches(folder):
    """As they are, but for the port."""
    output = make(folder, "--user", "alice", "--host", "broker.local", "--host", "10.1.2.3")
    assert "User:CN=alice" in output
    text = (folder / "server.properties").read_text().replace(":9093", "127.0.0.1:0")
    given = {**parse_properties(text), "log.dirs": "/logs"}
    options = client_options(parse_properties((folder / "client.properties").read_text()))
    context = client_context(options, load_material(options))

    async def scenario():
        broker = Broker(BrokerSettings(given), filesystem=MemoryFileSystem())
        await broker.start()
        for name in ("localhost", "broker.local", "10.1.2.3"):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", broker.port, ssl=context, server_hostname=name
            )
            writer.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(
                "127.0.0.1", broker.port, ssl=context, server_hostname="elsewhere"
            )
        await broker.stop()

    asyncio.run(scenario())


def test_keys_are_for_their_owner_alone(folder):
    """The folder, too."""
    make(folder)
    for name in ("ca.key", "server.pem", "client.pem"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_run_keeps_the_names(folder):
    """A broker that runs takes the new certificate over, and is reached by the former names."""
    make(folder, "--host", "broker.local", "--host", "10.1.2.3")
    make(folder, "--host", "other.local")
    found = x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())
    expected = ["other.local", "broker.local", "10.1.2.3", "localhost", "127.0.0.1", "::1"]
    assert sorted(hosts_of(found)) == sorted(expected)


def test_a_second_run_keeps_the_authority(folder):
    """So that clients which know it trust the new certificates."""
    make(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "as it was" in make(folder)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"server.pem", "client.pem"}
