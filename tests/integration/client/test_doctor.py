"""`ottla.diagnosis.doctor` against real brokers, and where none answers."""

import asyncio
import http.server
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest
from rig.probe import free_port

from ottla.base.clock import SystemClock
from ottla.diagnosis.doctor import Examination, examine
from ottla.diagnosis.findings import Area, Finding, Severity
from ottla.testing import Broker
from ottla.testing.cluster import Cluster


def examined(bootstrap: str, config: Mapping[str, str] | None = None) -> Examination:
    return asyncio.run(examine(bootstrap, dict(config or {"security.protocol": "PLAINTEXT"})))


def the_error(found: Examination) -> Finding:
    """The finding that is said first; it must be an error about an address."""
    assert not found.is_well
    first = found.findings[0]
    assert (first.severity, first.area) == (Severity.ERROR, Area.ADDRESSES)
    return first


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(secure=True) as broker:
        yield broker


def test_a_healthy_broker_is_well_and_every_area_was_examined(bootstrap: str) -> None:
    """Ottla and Apache Kafka alike; only Ottla's clock can be read without writing."""
    found = examined(bootstrap)
    assert [one for one in found.findings if one.severity is Severity.ERROR] == []
    assert set(found.checked) == set(Area)
    assert found.checked[Area.ADDRESSES].startswith("1 of 1 that brokers advertise answer")
    is_ottla = found.checked[Area.VERSIONS].startswith("Ottla")
    assert found.checked[Area.CLOCKS].startswith("not compared") is not is_ottla


def test_a_cluster_with_a_broker_whose_clock_is_an_hour_ahead() -> None:
    """That broker is named, and the others are not."""

    class Ahead(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() + 3_600_000

    async def main() -> Examination:
        async with Cluster(3, clocks={2: Ahead()}) as cluster:
            return await examine(
                f"127.0.0.1:{cluster.any.port}", {"security.protocol": "PLAINTEXT"}
            )

    (clocks,) = [one for one in asyncio.run(main()).findings if one.area is Area.CLOCKS]
    assert clocks.where == ("broker 2",)
    assert clocks.severity is Severity.ERROR


def test_brokers_with_different_settings_and_a_broker_that_is_down() -> None:
    """The partition that refuses writes is said before the settings."""

    async def main() -> Examination:
        async with Cluster(2) as cluster:
            await cluster.create_topic("t", 1, 2, {"min.insync.replicas": "2"})
            await cluster.kill(2)
            await cluster.until(lambda: (s := cluster.state("t")) is not None and s.isr == (1,))
            return await examine(
                f"127.0.0.1:{cluster.any.port}", {"security.protocol": "PLAINTEXT"}
            )

    found = asyncio.run(main())
    first = found.findings[0]
    assert (first.severity, first.trouble) == (Severity.ERROR, "under min ISR")
    assert "broker 2 is down" in first.cause
    assert any("is the replication factor" in one.cause for one in found.findings)


# -- where nothing answers


def test_a_port_on_which_nothing_listens() -> None:
    """The remedy says where a broker does answer, or how to start one."""
    found = the_error(examined(f"127.0.0.1:{free_port()}"))
    assert found.cause.startswith("nothing listens at 127.0.0.1:")
    assert "correct the port" in found.remedy


def test_a_name_that_does_not_resolve() -> None:
    """It is the name, not the broker."""
    found = the_error(examined("no-such-host.invalid:9092"))
    assert found.cause.startswith("the name no-such-host.invalid does not resolve on this machine")


def test_a_web_server_at_the_port() -> None:
    """One that waits for the end of a line is asked in its own language."""

    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        found = the_error(examined(f"127.0.0.1:{server.server_port}"))
    finally:
        server.shutdown()
        server.server_close()
    assert "is not a Kafka listener: it speaks HTTP" in found.cause


def test_a_port_that_accepts_connections_and_never_answers() -> None:
    """A broker that hangs looks so."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(100)
        found = the_error(examined(f"127.0.0.1:{silent.getsockname()[1]}"))
    assert "accepts connections and does not answer" in found.cause
    assert "hangs or is overloaded" in found.remedy


# -- TLS


def test_a_client_without_tls_at_a_port_of_tls(secured: Broker) -> None:
    """It is recognised, and the remedy has the settings."""
    found = the_error(examined(secured.bootstrap))
    assert "speaks Kafka's protocol over TLS; this client has security.protocol=PLAINTEXT" in (
        found.cause
    )
    assert "security.protocol=SSL or SASL_SSL" in found.remedy


def test_a_client_with_tls_at_a_plaintext_port(secured: Broker) -> None:
    """The reverse is recognised, too."""
    with Broker() as plain:
        found = the_error(examined(plain.bootstrap, secured.login.for_java()))
    assert "speaks Kafka's protocol in plaintext; this client has security.protocol=SASL_SSL" in (
        found.cause
    )


def test_tls_and_login_that_work_are_well_and_the_expiry_is_shown(secured: Broker) -> None:
    """The certificates of the test are valid for longer than a month."""
    found = examined(secured.bootstrap, secured.login.for_java())
    assert [one for one in found.findings if one.severity is Severity.ERROR] == []
    assert "the first expires 20" in found.checked[Area.CERTIFICATES]


def test_a_wrong_password_is_the_login_and_not_the_address(secured: Broker) -> None:
    """The broker answered, and refused."""
    config = secured.login.for_java()
    config["sasl.jaas.config"] = config["sasl.jaas.config"].replace(
        secured.login.password, "wrong-password"
    )
    assert the_error(examined(secured.bootstrap, config)).trouble == "login fails"


def test_a_certificate_for_another_name_shows_its_names(secured: Broker) -> None:
    """127.0.0.1 stands in it, 127.0.0.2 does not."""
    config = secured.login.for_java()
    with Broker(secure=True, host="127.0.0.2") as other:
        at = other.bootstrap.replace("127.0.0.2", "127.0.0.1")
        found = the_error(examined(at.replace("127.0.0.1", "127.0.0.2"), config))
    assert found.trouble == "TLS fails"
    assert "its certificate is for 127.0.0.2" in found.cause


# -- advertised addresses


@pytest.mark.parametrize(
    ("advertised", "cause"),
    [
        ("no-such-host.invalid:9092", "the name no-such-host.invalid does not resolve"),
        ("127.0.0.1:1", "nothing listens at 127.0.0.1:1"),
    ],
)
def test_an_advertised_address_that_clients_cannot_use(advertised: str, cause: str) -> None:
    """The classic: the bootstrap address works, and then nothing does."""
    settings = {"advertised.listeners": f"PLAINTEXT://{advertised}"}
    with Broker(settings=settings) as broker:
        found = the_error(examined(broker.bootstrap))
    assert found.trouble.startswith("an advertised address fails")
    assert found.cause.startswith(f"broker 0 advertises {advertised}: {cause}")
    assert "advertised.listeners" in found.remedy


def test_an_address_at_which_another_broker_answers() -> None:
    """A port that was forwarded to the wrong broker."""
    with Broker(settings={"node.id": "7"}) as other:
        settings = {"advertised.listeners": f"PLAINTEXT://{other.bootstrap}"}
        with Broker(settings=settings) as broker:
            found = the_error(examined(broker.bootstrap))
    assert found.trouble == "another broker answers"


def test_bootstrap_addresses_of_two_clusters() -> None:
    """A list that was copied together."""
    with Broker() as one, Broker() as other:
        found = the_error(examined(f"{one.bootstrap},{other.bootstrap}"))
    assert found.trouble == "two clusters"
