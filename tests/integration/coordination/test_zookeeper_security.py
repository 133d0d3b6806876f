"""A real ZooKeeper with logins, ACLs on nodes and TLS: who may do what, and what errors say."""

import asyncio
import contextlib
import itertools
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from rig.nodes import properties
from rig.zookeeper_secured import PASSWORD, USER

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.broker.process.store_access import store_access
from ottla.cli.command import cli
from ottla.coordination.connect import connect
from ottla.coordination.interface.store import StoreDenied, StoreUnavailable
from ottla.metadata.paths import SENSITIVE
from ottla.operations.certificates import new_authority
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from tests.unit.coordination.writes import create

NOW = datetime.now(UTC)
_numbers = itertools.count()

DIGEST = {"coordination.user": USER, "coordination.password": PASSWORD}
SASL = {**DIGEST, "coordination.sasl.mechanism": "DIGEST-MD5"}


def tls(secured, *, shows_certificate=False):
    settings = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(secured.files.authority),
    }
    if shows_certificate:
        settings["zookeeper.ssl.keystore.location"] = str(secured.files.client)
    return settings


def known_as(secured, how):
    """Settings of an identity, and the scheme under which ZooKeeper knows it."""
    return {
        "digest": (DIGEST, "digest"),
        "sasl": (SASL, "sasl"),
        "sasl-over-tls": ({**SASL, **tls(secured)}, "sasl"),
        "certificate": (tls(secured, shows_certificate=True), "x509"),
    }[how]


def address(secured, settings):
    hosts = secured.tls_hosts if "zookeeper.ssl.client.enable" in settings else secured.open_hosts
    return f"zookeeper://{hosts}/secured-{next(_numbers)}"


def opened(where, settings, timeout_ms=20_000):
    return connect(where, access=store_access(BrokerSettings(settings)), timeout_ms=timeout_ms)


@contextlib.contextmanager
def stranger(secured):
    """ZooKeeper's own kind of client, that says not who it is."""
    client = KazooClient(hosts=secured.open_hosts)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def path_of(where):
    return "/" + where.split("/", 3)[3]


@pytest.mark.parametrize("how", ["digest", "sasl", "sasl-over-tls", "certificate"])
def test_nodes_are_for_their_creator_and_secrets_for_no_other_eyes(secured, how):
    """Others read what is not sensitive, and change nothing; the same identity may do all."""
    settings, scheme = known_as(secured, how)
    where = address(secured, settings)

    async def write():
        for _ in range(2):
            store = await opened(where, settings)
            if await store.get("/brokers") is None:
                await store.ensure("/cluster/secret")
                await create(store, "/brokers", b"x")
            assert (await store.get("/brokers")).data == b"x"
            await store.close()

    asyncio.run(write())
    root = path_of(where)
    with stranger(secured) as client:
        assert client.get(f"{root}/brokers")[0] == b"x"
        for attempt in (
            lambda: client.set(f"{root}/brokers", b"y"),
            lambda: client.create(f"{root}/brokers/ids"),
            lambda: client.delete(f"{root}/brokers"),
            lambda: client.create(f"{root}/other"),
            lambda: client.get(f"{root}/cluster/secret"),
            lambda: client.set(f"{root}/cluster/secret", b"y"),
        ):
            with pytest.raises(NoAuthError):
                attempt()
        acls, _ = client.get_acls(f"{root}/brokers")
        assert [(acl.id.scheme, acl.perms) for acl in acls] == [(scheme, 31), ("world", 1)]


def test_without_set_acl_nodes_are_open_although_the_user_logs_in(secured):
    """As while a tree is being secured: brokers without the user still work with it."""
    settings = {**SASL, "zookeeper.set.acl": "false"}
    where = address(secured, settings)

    async def write():
        store = await opened(where, settings)
        await store.ensure("/cluster/secret")
        await store.close()

    asyncio.run(write())
    with stranger(secured) as client:
        client.set(f"{path_of(where)}/cluster/secret", b"y")


def test_a_tree_is_secured_and_opened_again_by_a_command(secured, tmp_path):
    """`ottla store secure`, `ottla store open`: every node, whoever made it."""
    where = address(secured, {})
    file = tmp_path / "server.properties"
    file.write_text(properties({**SASL, "coordination.connect": where}))
    root = path_of(where)

    async def write():
        store = await opened(where, {})
        await store.ensure("/cluster/secret")
        await store.ensure("/brokers/ids")
        await store.close()

    asyncio.run(write())
    with stranger(secured) as client:
        done = CliRunner().invoke(cli, ["store", "secure", str(file)])
        assert done.exit_code == 0, done.output
        assert done.output.startswith("5 nodes of zookeeper://")
        for path in ("", "/cluster", "/brokers/ids"):
            with pytest.raises(NoAuthError):
                client.set(f"{root}{path}", b"y")
        with pytest.raises(NoAuthError):
            client.get(f"{root}/cluster/secret")
        assert CliRunner().invoke(cli, ["store", "open", str(file)]).exit_code == 0
        assert client.get(f"{root}/cluster/secret")[0] == b""
        client.set(f"{root}/brokers/ids", b"y")
    done = CliRunner().invoke(cli, ["store", "secure", str(file)])
    assert done.exit_code == 0, done.output

    async def read():
        with pytest.raises(StoreDenied, match=r"denies us /cluster/secret: set coordination\.user"):
            await (await opened(where, {})).get("/cluster/secret")

    asyncio.run(read())


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"coordination.password": "wrong"}, StoreDenied, "user 'ottla' by DIGEST-MD5"),
        ({"coordination.user": "other"}, StoreDenied, "user_NAME="),
    ],
)
def test_a_refused_login_says_what_to_mend(secured, changed, error, said):
    """At once, not after the time that a store gets to answer; and no password in it."""
    settings = {**SASL, **changed}

    async def attempt():
        with pytest.raises(error) as caught:
            await opened(address(secured, settings), settings, timeout_ms=60_000)
        assert said in caught.value.message
        assert "wrong" not in caught.value.message
        assert PASSWORD not in caught.value.message

    asyncio.run(attempt())


def test_a_server_that_knows_no_users_is_named(server):
    """It has no JAAS file: no broker waits for it, or goes on without having logged in."""

    async def attempt():
        with pytest.raises(StoreDenied, match="has it a JAAS file"):
            await opened(f"zookeeper://{server.hosts}/no-users", SASL, timeout_ms=60_000)

    asyncio.run(attempt())


def test_tls_that_does_not_fit_is_named(secured, tmp_path):
    """The wrong port both ways, an authority that did not sign, another host's certificate."""
    other = tmp_path / "other.pem"
    other.write_bytes(new_authority("other", NOW).pem)
    known = tls(secured)
    cases = [
        (secured.open_hosts, known, "secureClientPort names"),
        (secured.tls_hosts, {}, "zookeeper.ssl.client.enable=true"),
        (
            secured.tls_hosts,
            {**known, "zookeeper.ssl.truststore.location": str(other)},
            "zookeeper.ssl.truststore.location",
        ),
        (secured.tls_hosts.replace("127.0.0.1", "127.0.0.2"), known, "did not answer"),
    ]

    async def attempt(hosts, settings, said):
        with pytest.raises(StoreUnavailable) as caught:
            await opened(f"zookeeper://{hosts}/tls", settings, timeout_ms=3_000)
        assert said in caught.value.message

    async def all_of_them():
        await asyncio.gather(*(attempt(*case) for case in cases))

    asyncio.run(all_of_them())


def test_the_host_name_of_a_server_is_compared(secured):
    """Unless zookeeper.ssl.endpoint.identification.algorithm is empty."""
    by_name = secured.tls_hosts.replace("127.0.0.1", "127.1")
    known = tls(secured)
    unchecked = {**known, "zookeeper.ssl.endpoint.identification.algorithm": ""}

    async def attempt():
        with pytest.raises(StoreUnavailable, match=r"host name of coordination\.connect"):
            await opened(f"zookeeper://{by_name}/tls", known, timeout_ms=3_000)
        await (await opened(f"zookeeper://{by_name}/tls", unchecked)).close()

    asyncio.run(attempt())


def test_set_acl_needs_somebody_to_protect_nodes_for():
    """Said at start, with what to set."""
    with pytest.raises(OttlaError, match=r"zookeeper\.set\.acl=true needs an identity"):
        store_access(BrokerSettings({"zookeeper.set.acl": "true"}))
    with pytest.raises(OttlaError, match=r"DIGEST-MD5 needs coordination\.user"):
        store_access(BrokerSettings({"coordination.sasl.mechanism": "DIGEST-MD5"}))
    for given, missing in (("user", "password"), ("password", "user")):
        with pytest.raises(OttlaError, match=rf"{given} needs coordination\.{missing}, which is"):
            store_access(BrokerSettings({f"coordination.{given}": "x"}))
    assert not store_access(BrokerSettings({})).protects


def test_every_node_of_a_broker_is_protected(secured):
    """A stranger changes none of them, and reads no secret, no user and no broker's settings."""
    settings = {**SASL, **tls(secured)}
    where = address(secured, settings)
    given = {
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": "/logs",
        "coordination.connect": where,
        **settings,
    }

    async def scenario():
        broker = Broker(BrokerSettings(given), filesystem=MemoryFileSystem())
        await broker.start()
        await broker.parts.metadata.topics.auto_create("t")
        loop = asyncio.get_running_loop()
        open_paths, hidden = await loop.run_in_executor(None, look)
        assert {"/controller", "/brokers/ids/1", "/brokers/topics/t"} <= set(open_paths)
        assert set(hidden) == {*SENSITIVE} - {"/delegation_token"}
        await broker.stop()

    def look():
        root = path_of(where)
        seen, hidden = [], []
        with stranger(secured) as client:
            level = [root]
            while level:
                place = level.pop()
                with pytest.raises(NoAuthError):
                    client.set(place, b"")
                try:
                    level += [f"{place}/{name}" for name in client.get_children(place)]
                    seen.append(place.removeprefix(root))
                except NoAuthError:
                    hidden.append(place.removeprefix(root))
        return seen, hidden

    asyncio.run(scenario())
