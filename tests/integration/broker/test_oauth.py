"""Addresses of an issuer, what is read from them, and tokens that are kept."""

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rig.issuer import Issuer, serving

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.source.cluster import is_outage
from ottla.network.oauth.address import IssuerAddress, read_address
from ottla.network.oauth.daemon import in_daemon
from ottla.network.oauth.issuer_reader import FetchFailed, IssuerReader
from ottla.network.oauth.options import new_fetcher, token_options, token_source
from ottla.network.oauth.tokens import (
    ClientCredentials,
    Patience,
    TokenSource,
    from_endpoint,
)
from ottla.operations.certificates import make_development_files
from ottla.security.sasl.bearer import OAuthBearerToken

CREDENTIALS = ClientCredentials("alice", "s3cret", "kafka")
ONCE = Patience(0, 0)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    return make_development_files(folder, [], "x", datetime.now(UTC)).authority


@pytest.fixture
def issuer(authority: Path) -> Iterator[Issuer]:
    with serving(Issuer(clients={"alice": "s3cret"}), authority.parent / "server.pem") as running:
        yield running


def fetcher(url: str, authority: Path | None) -> IssuerReader:
    tls = () if authority is None else (("ssl.truststore.location", str(authority)),)
    return new_fetcher(read_address("the.setting", url, [url], "the.list"), tls)


def test_addresses_are_https_or_files() -> None:
    """With what to ask for; a file as Java writes it, too."""
    for url, endpoint in (
        ("https://a.example/keys?x=1", ("/keys?x=1", "a.example", 443)),
        ("https://a.example:8443", ("/", "a.example", 8443)),
        ("file:///etc/keys%20x.json", ("/etc/keys x.json", "", 0)),
        ("file:/etc/keys.json", ("/etc/keys.json", "", 0)),
    ):
        assert read_address("s", url, [url], "l") == IssuerAddress(url, *endpoint)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://a.example/keys", "has no TLS"),
        ("ftp://a.example/keys", "https://HOST/PATH or file:///PATH"),
        ("/etc/keys", "https://HOST/PATH or file:///PATH"),
        ("file://a.example/etc/keys", "https://HOST/PATH or file:///PATH"),
        ("https://me:s3cret@a.example/", "has a user or password in it"),
        ("https://a.example:port/", "is no URL"),
    ],
)
def test_other_addresses_are_refused(url: str, words: str) -> None:
    """Though they are allowed; a password in one is not repeated."""
    with pytest.raises(OttlaError) as raised:
        read_address("the.setting", url, [url], "the.list")
    assert words in raised.value.message
    assert "s3cret" not in raised.value.message


def test_an_address_must_be_allowed_letter_for_letter() -> None:
    """A longer one or a shorter one is another one."""
    for url in ("https://a/keys/..", "https://a/", "https://a/keys?x", "HTTPS://a/keys"):
        with pytest.raises(OttlaError, match=r"is not allowed: add it to the\.list"):
            read_address("the.setting", url, ["https://a/keys"], "the.list")


def test_keys_are_read_over_https(issuer: Issuer, authority: Path) -> None:
    """With the trust store of the login module; without it the issuer is not trusted."""
    assert fetcher(issuer.keys_url, authority).get() == issuer.jwks()
    with pytest.raises(FetchFailed, match=r"not trusted .*ssl\.truststore\.location"):
        fetcher(issuer.keys_url, None).get()
    # The same address by a name that the certificate does not have.
    with pytest.raises(FetchFailed, match=r"not trusted .*mismatch"):
        fetcher(f"https://127.1:{issuer.port}/keys", authority).get()


@pytest.mark.parametrize("status", [302, 404, 500])
def test_only_the_document_itself_is_an_answer(
    issuer: Issuer, authority: Path, status: int
) -> None:
    """No redirection is followed: it could lead to any server."""
    issuer.status = status
    with pytest.raises(FetchFailed, match=f"it answers {status}"):
        fetcher(issuer.token_url, authority).get()
    assert issuer.requests == ["/token"]


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    """And one that is not there is an error with its cause."""
    file = tmp_path / "keys"
    file.write_bytes(b"x" * (256 << 10))
    assert len(fetcher(f"file://{file}", None).get()) == 256 << 10
    file.write_bytes(b"x" * ((256 << 10) + 1))
    with pytest.raises(FetchFailed, match="more than 262144 bytes"):
        fetcher(f"file://{file}", None).get()
    file.unlink()
    with pytest.raises(FetchFailed, match="No such file"):
        fetcher(f"file://{file}", None).get()


@pytest.mark.parametrize(
    ("begins", "goes_on", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", "not answer in time"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x", "not answer in time"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "more than 262144 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 10_000, "more than 262144 bytes"),
    ],
    ids=["header by bytes", "content by bytes", "no end of answers", "no end"],
)
def test_an_answer_without_an_end_is_left(
    authority: Path, begins: bytes, goes_on: bytes, words: str
) -> None:
    """By its time or by its size: reads of keys wait for the one that runs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.parent / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with (
                contextlib.suppress(OSError),
                server.accept()[0] as accepted,
                context.wrap_socket(accepted, server_side=True) as client,
            ):
                client.recv(4096)
                client.sendall(begins)
                while True:
                    client.sendall(goes_on)
                    if len(goes_on) == 1:
                        time.sleep(0.01)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://localhost:{server.getsockname()[1]}/keys"
        address = read_address("the.setting", url, [url], "the.list")
        tls = (("ssl.truststore.location", str(authority)),)
        with pytest.raises(FetchFailed, match=words):
            new_fetcher(address, tls, read_s=0.5 if len(goes_on) == 1 else 60.0).get()
        thread.join()


def test_an_address_where_no_server_is_fails(authority: Path) -> None:
    """With the system's words."""
    with pytest.raises(FetchFailed, match="refused"):
        fetcher("https://localhost:1/keys", authority).get()


def test_a_token_is_asked_for_with_id_and_secret(issuer: Issuer, authority: Path) -> None:
    """In the header, as Kafka's client does; the form has grant type and scope."""
    supply = from_endpoint(fetcher(issuer.token_url, authority), CREDENTIALS, ONCE, lambda: 1000.0)
    token = supply()
    assert isinstance(token, OAuthBearerToken)
    assert token.text.count(".") == 2
    assert token.expires_s == 1600
    assert issuer.forms == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}]


def test_an_endpoint_that_fails_is_asked_again_unless_it_refuses(
    issuer: Issuer, authority: Path
) -> None:
    """A wrong secret is not tried twice; the error has none of it."""
    wrong = CREDENTIALS._replace(secret="wr0ng")
    at = fetcher(issuer.token_url, authority)
    with pytest.raises(OttlaError, match="check clientId and clientSecret") as raised:
        from_endpoint(at, wrong, Patience(0.001, 5))()
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "wr0ng" not in f"{raised.value.message} {wrong!r}"
    assert len(issuer.requests) == 1
    issuer.status = 503
    asked, patience_s = 0, 0.05
    while asked < 2:
        # Longer where the machine stood still meanwhile.
        asked, patience_s = -len(issuer.requests), patience_s * 4
        with pytest.raises(OttlaError, match="it answers 503") as raised:
            from_endpoint(at, CREDENTIALS, Patience(0.01, patience_s))()
        asked += len(issuer.requests)
        assert patience_s < 60
    # Calls go on trying, as where a broker is away; `ottla lake follow` as long as it takes.
    assert raised.value.code is ErrorCode.NETWORK_EXCEPTION
    assert is_outage(raised.value)


def test_a_call_that_does_not_come_back_does_not_delay_the_end_of_a_loop() -> None:
    """As it would in the loop's pool of threads, whose threads are waited for."""
    going_on, released = threading.Event(), threading.Event()

    def call() -> None:
        going_on.set()
        released.wait()

    async def scenario() -> None:
        waiting = asyncio.ensure_future(in_daemon(call))
        await asyncio.sleep(0)
        await asyncio.to_thread(going_on.wait)
        waiting.cancel()

    asyncio.run(scenario())
    assert not released.is_set()
    released.set()


def test_a_call_beside_the_loop_gives_its_result_or_its_error() -> None:
    """To the task that waits."""
    assert asyncio.run(in_daemon(lambda: 7)) == 7
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_daemon(lambda: 1 // 0))


class World:
    """A clock, and a supplier that counts."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.supplied = 0
        self.fails = False

    def supply(self) -> OAuthBearerToken:
        if self.fails:
            raise OttlaError(ErrorCode.SASL_AUTHENTICATION_FAILED, "the issuer is away")
        self.supplied += 1
        return OAuthBearerToken(f"token-{self.supplied}", self.now_s + 100)


def test_a_token_is_kept_for_a_part_of_its_time() -> None:
    """Then a new one is got."""
    world = World()
    source = TokenSource(world.supply, 0.8, lambda: world.now_s)
    assert [source.token(), source.token()] == ["token-1", "token-1"]
    world.now_s = 1079
    assert source.token() == "token-1"
    world.now_s = 1080
    assert source.token() == "token-2"


def test_a_token_is_used_on_where_no_new_one_is_to_be_had() -> None:
    """Until it expires; the issuer is not asked at every login."""
    world = World()
    source = TokenSource(world.supply, 0.8, lambda: world.now_s)
    assert source.token() == "token-1"
    world.now_s, world.fails = 1080, True
    assert source.token() == "token-1"
    world.fails = False
    world.now_s = 1084
    assert source.token() == "token-1"
    world.now_s = 1085
    assert source.token() == "token-2"
    world.now_s, world.fails = 1185, True
    with pytest.raises(OttlaError, match="the issuer is away"):
        source.token()


def test_a_token_without_a_time_says_itself_when_it_expires() -> None:
    """By its claim; one that is no JWT is asked for at each login."""
    issuer, given = Issuer(), []

    def supply() -> str:
        given.append(1)
        return issuer.token("alice", 1000)

    source = TokenSource(supply, 0.8, lambda: 1000.0)
    assert source.token() == source.token()
    assert len(given) == 1
    opaque = iter(["a", "b"])
    assert [TokenSource(lambda: next(opaque)).token() for _ in range(2)] == ["a", "b"]


@pytest.mark.parametrize(
    "lasts_s", [10**400, float("inf"), float("nan")], ids=["large", "inf", "nan"]
)
def test_a_time_without_an_end_is_not_known(
    issuer: Issuer, authority: Path, lasts_s: float
) -> None:
    """In the endpoint's answer and in the token: one is asked for at each login, without error."""
    issuer.lifetime_s = lasts_s
    source = TokenSource(from_endpoint(fetcher(issuer.token_url, authority), CREDENTIALS, ONCE))
    assert source.token().count(".") == 2
    assert source.token().count(".") == 2
    assert len(issuer.forms) == 2


@pytest.mark.parametrize("text", ["", "a b", "a\x01b", "ä", "x" * 16_385])
def test_what_cannot_be_sent_is_no_token(text: str) -> None:
    """Separators of the message above all."""
    with pytest.raises(OttlaError, match="there is no token"):
        TokenSource(lambda: text).token()


def value_of(settings: dict[str, str]):  # type: ignore[no-untyped-def]
    return lambda name: settings.get(name, 0.8 if name.endswith("factor") else None)


def test_the_settings_of_a_client_say_where_its_tokens_come_from(
    issuer: Issuer, authority: Path, tmp_path: Path
) -> None:
    """From an endpoint with the options of the login module, or from a file."""
    url = issuer.token_url
    jaas = {
        "clientId": "alice",
        "clientSecret": "s3cret",
        "scope": "kafka",
        "ssl.truststore.location": str(authority),
    }
    value = value_of({"sasl.oauthbearer.token.endpoint.url": url})
    options = token_options(value, jaas, [url], "the.list")
    assert options.credentials == CREDENTIALS
    assert token_source(options).token().count(".") == 2
    assert "s3cret" not in repr(options)
    file = tmp_path / "token"
    file.write_text(" a.b.c\n")
    url = f"file://{file}"
    value = value_of({"sasl.oauthbearer.token.endpoint.url": url})
    source = token_source(token_options(value, {}, [url], "the.list"))
    assert source.token() == "a.b.c"
    file.write_text("d.e.f")
    assert source.token() == "d.e.f"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "sasl.oauthbearer.token.endpoint.url is missing"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://b/"}, "is not allowed: add it to here"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://a/"}, "needs clientId and clientSecret"),
    ],
)
def test_settings_that_give_no_token_are_refused(settings: dict[str, str], words: str) -> None:
    """Before anything is connected."""
    with pytest.raises(OttlaError, match=words) as raised:
        token_options(value_of(settings), {}, ["https://a/"], "here")
    assert raised.value.code is ErrorCode.INVALID_CONFIG
