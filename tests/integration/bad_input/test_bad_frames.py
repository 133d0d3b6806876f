"""Bytes that are no requests: the connection is closed, the log says why, the broker serves on."""

import contextlib
import struct
import time

import pytest
from rig.nodes import Node
from rig.probe import serves
from rig.wire_client import WireClient, reset, sized

from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest

UNSUPPORTED_VERSION = 35
METADATA, PRODUCE, API_VERSIONS = 3, 0, 18
MEBIBYTE = 1 << 20


def header(api_key: int, version: int, correlation_id: int = 1) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, -1)


def said(node: Node, *words: str) -> bool:
    """Whether the log holds a line with all these words soon."""
    if node.name == "kafka":
        return True
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        if any(all(w in line for w in words) for line in node.process.log_tail().splitlines()):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 200 * MEBIBYTE])
def test_impossible_size_closes_the_connection(node: Node, client: WireClient, size: int) -> None:
    """A negative or huge size is refused before anything is allocated for it.

    The first is in the log; later ones of the same address are not, for ten minutes.
    """
    before = node.process.rss_bytes()
    client.send(struct.pack(">i", size) + b"x" * 100)

    assert client.closed_by_peer()
    assert said(node, "closing the connection", "a request of", "bytes")
    assert node.process.rss_bytes() - before < 16 * MEBIBYTE


def test_size_that_a_client_only_claims_costs_no_memory(node: Node) -> None:
    """Memory is taken for bytes that came, not for bytes announced."""
    before = node.process.rss_bytes()
    clients = [WireClient(node.port) for _ in range(4)]
    for client in clients:
        client.send(struct.pack(">i", 60 * MEBIBYTE) + header(METADATA, 1))
    time.sleep(0.2)
    grown = node.process.rss_bytes() - before
    for client in clients:
        client.socket.close()

    assert grown < 16 * MEBIBYTE or node.name == "kafka"  # A JVM takes what was announced.


@pytest.mark.parametrize(
    ("greeting", "word"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), "TLS"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
        (b"POST /topics HTTP/1.1\r\n\r\n", "HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
    ],
    ids=["TLS", "GET", "POST", "SSH"],
)
def test_another_protocol_is_named_in_the_log(
    node: Node, client: WireClient, greeting: bytes, word: str
) -> None:
    """Closed; HTTP, which is answered in its own words, after that (Kafka answers nothing)."""
    client.send(greeting)

    answer = b""
    with contextlib.suppress(ConnectionError):
        while got := client.socket.recv(4096):
            answer += got
    if word == "HTTP" and node.name != "kafka":
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"Kafka" in answer
    else:
        assert answer == b""
    assert said(node, "closing the connection", word)


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        header(METADATA, 1)[:7],
        header(METADATA, 1),
        header(METADATA, 1) + struct.pack(">i", 1000),
        header(METADATA, 1) + struct.pack(">i", 2**31 - 1),
        header(METADATA, 1) + struct.pack(">ih", 1, 3000) + b"short",
        header(METADATA, 1) + struct.pack(">ih", 1, -2),
        header(METADATA, 9) + b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        header(PRODUCE, 9) + b"\x00\x00" + struct.pack(">hi", 1, 100) + b"\xff\xff\xff\xff\x0f",
        header(METADATA, 1, 1)[:8] + struct.pack(">h", 30_000) + b"client",
    ],
    ids=[
        "one byte",
        "half a header",
        "no body",
        "array cut off",
        "huge array",
        "string cut off",
        "negative string",
        "endless varint",
        "huge compact array",
        "client id cut off",
    ],
)
def test_request_that_ends_too_soon_closes_the_connection(
    node: Node, client: WireClient, body: bytes
) -> None:
    """Lengths are checked against what is there, never trusted."""
    before = node.process.rss_bytes()
    client.send(sized(body))

    assert client.closed_by_peer()
    assert said(node, "closing the connection")
    assert node.process.rss_bytes() - before < 16 * MEBIBYTE


@pytest.mark.parametrize("sent", [1, 3, 4, 10])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_that_leaves_in_the_middle_of_a_frame_harms_nobody(
    node: Node, sent: int, how: str
) -> None:
    client = WireClient(node.port)
    frame = client.frame(MetadataRequest(), 1)
    client.send(frame[:sent])
    if how == "reset":
        reset(client.socket)
    else:
        client.socket.close()

    assert serves(node.port)


def test_answer_that_nobody_waits_for_harms_nobody(node: Node) -> None:
    """A client that asks and hangs up: the write fails, and only its connection ends."""
    for _ in range(20):
        client = WireClient(node.port)
        client.send(client.frame(MetadataRequest(), 1) * 50)
        reset(client.socket)

    assert serves(node.port)


def test_unknown_api_closes_the_connection(node: Node, client: WireClient) -> None:
    client.send(sized(header(999, 0)))

    assert client.closed_by_peer()
    assert said(node, "999")


def test_unknown_version_of_api_versions_is_answered_with_version_0(client: WireClient) -> None:
    """Error 35 and the ranges, so that a newer client can step down (KIP-511)."""
    client.send(sized(header(API_VERSIONS, 99, correlation_id=0) + b"\x00"))

    response = client.response(API_VERSIONS, 0)

    assert response.error_code == UNSUPPORTED_VERSION
    assert (API_VERSIONS, 0, 4) in [
        (k.api_key, k.min_version, k.max_version) for k in response.api_keys
    ]


@pytest.mark.parametrize(("api_key", "version"), [(METADATA, 99), (METADATA, -1), (1, 3), (1, 99)])
def test_unknown_version_of_another_api_closes_the_connection(
    node: Node, client: WireClient, api_key: int, version: int
) -> None:
    client.send(sized(header(api_key, version)))

    assert client.closed_by_peer()
    assert said(node, "closing the connection")


def test_frame_that_comes_byte_by_byte_is_served(client: WireClient) -> None:
    """Slow is not wrong."""
    frame = client.frame(ApiVersionsRequest(), 0)
    for position in range(len(frame)):
        client.send(frame[position : position + 1])

    assert client.response(API_VERSIONS, 0).error_code == 0


def test_requests_before_the_bad_one_are_answered(client: WireClient) -> None:
    """Order holds to the last good request."""
    good = client.frame(MetadataRequest(topics=[]), 1)
    client.send(good + sized(header(999, 0)))

    assert client.response(METADATA, 1).brokers[0].node_id == 1
    assert client.closed_by_peer()
