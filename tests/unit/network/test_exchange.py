"""Requests and answers of one connection, without a connection."""

import re
import struct
from math import inf
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.network.exchange import Exchange
from ottla.wire.api import ApiKey
from ottla.wire.frames import decode_request_header, encode_response
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.between_brokers import StopReplicaRequest, StopReplicaResponse


class World:
    """An exchange whose waiters are words."""

    def __init__(self, protocol: str = "") -> None:
        self.exchange: Exchange[str] = Exchange(
            "broker 2", "tester", response_bytes_max=1 << 20, protocol=protocol
        )

    def send(self, waiter: str, deadline_s: float = 10.0) -> bytes:
        return joined(self.exchange.send(StopReplicaRequest(), 4, deadline_s, waiter=waiter))

    def receive(self, data: bytes, piece_bytes: int = 1 << 16) -> list[tuple[str, int]]:
        """Waiters and the error codes of their answers."""
        left, given = memoryview(data), []
        while left:
            room = self.exchange.get_buffer()
            count = min(len(room), len(left), piece_bytes)
            room[:count] = left[:count]
            answers = self.exchange.receive(count)
            while answers:
                waiter, message = answers.popleft()
                given.append((waiter, message.error_code))
            left = left[count:]
        return given

    @property
    def why(self) -> str:
        assert self.exchange.failure is not None
        return self.exchange.failure.message


def joined(parts: list[Any]) -> bytes:
    return b"".join(parts)


def answer(correlation_id: int, code: int = 0) -> bytes:
    response = StopReplicaResponse(error_code=code)
    return joined(encode_response(response, ApiKey.STOP_REPLICA, 4, correlation_id))


def correlation_id_of(request: bytes) -> int:
    return decode_request_header(request[4:])[0].correlation_id


def test_requests_are_numbered_in_order() -> None:
    """Also one without an answer takes a number."""
    world = World()
    numbers = [
        correlation_id_of(world.send("a")),
        correlation_id_of(joined(world.exchange.send_unanswered(StopReplicaRequest(), 4))),
        correlation_id_of(world.send("b")),
    ]
    assert numbers == [0, 1, 2]
    assert world.exchange.in_flight == 2


@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 16])
def test_answers_find_their_waiters(piece_bytes: int) -> None:
    """In the order of the requests, whatever pieces the bytes arrive in."""
    world = World()
    for waiter in "abc":
        world.send(waiter)
    stream = answer(0, 7) + answer(1) + answer(2, 3)
    assert world.receive(stream, piece_bytes) == [("a", 7), ("b", 0), ("c", 3)]
    assert world.exchange.in_flight == 0
    assert world.exchange.failure is None


def test_an_answer_after_an_unanswered_request_finds_its_waiter() -> None:
    """The number that was skipped is not waited for."""
    world = World()
    world.exchange.send_unanswered(StopReplicaRequest(), 4)
    world.send("a")
    assert world.receive(answer(1)) == [("a", 0)]


def test_the_earliest_deadline_counts() -> None:
    """Wherever its request stands in line."""
    world = World()
    assert world.exchange.next_deadline_s == inf
    world.send("late", deadline_s=300.0)
    assert world.exchange.next_deadline_s == 300.0
    world.send("early", deadline_s=30.0)
    world.send("later", deadline_s=400.0)
    assert world.exchange.next_deadline_s == 30.0


def test_a_deadline_of_an_answered_request_is_no_deadline() -> None:
    """`time_passed` goes on to the next one."""
    world = World()
    world.send("early", deadline_s=30.0)
    world.send("late", deadline_s=300.0)
    world.receive(answer(0))
    world.exchange.time_passed(30.0)
    assert world.exchange.failure is None
    assert world.exchange.next_deadline_s == 300.0
    world.receive(answer(1))
    world.exchange.time_passed(300.0)
    assert world.exchange.failure is None
    assert world.exchange.next_deadline_s == inf


def test_a_deadline_that_passes_ends_the_connection_for_all() -> None:
    """The failure names the API that was late, and every waiter is given back in order."""
    world = World()
    world.send("late", deadline_s=300.0)
    world.send("early", deadline_s=30.0)
    world.exchange.time_passed(29.9)
    assert world.exchange.failure is None
    world.exchange.time_passed(30.0)
    assert world.exchange.failure is not None
    assert world.exchange.failure.code is ErrorCode.REQUEST_TIMED_OUT
    assert "broker 2 did not answer STOP_REPLICA in time" in world.why
    assert world.exchange.take_unanswered() == ["late", "early"]
    assert world.exchange.take_unanswered() == []


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        (answer(2), r"answered request 2 where the answer to request 1 \(STOP_REPLICA\) was due"),
        (struct.pack(">ii", 4, 1), "sent a STOP_REPLICA answer that cannot be read"),
        (b"HTTP/1.1 400 Bad Request\r\n", "speaks HTTP bytes"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS bytes"),
        (struct.pack(">i", -1), "speaks other bytes"),
        (struct.pack(">i", 1 << 21), "an answer of 2097152 bytes"),
    ],
    ids=["another's", "cut off", "HTTP", "TLS", "negative", "too large"],
)
def test_what_stands_in_front_of_nonsense_is_good(nonsense: bytes, why: str) -> None:
    """The rest fails, and nothing behind it is read."""
    world = World()
    for waiter in "abc":
        world.send(waiter)
    assert world.receive(answer(0, 5) + nonsense + answer(1) + answer(2)) == [("a", 5)]
    assert world.exchange.failure is not None
    assert world.exchange.failure.code is ErrorCode.NETWORK_EXCEPTION
    assert re.search(why, world.why)
    assert world.exchange.take_unanswered() == ["b", "c"]


def test_an_answer_to_no_request_ends_the_connection() -> None:
    """It could only be taken for the answer to the next request."""
    world = World()
    world.send("a")
    assert world.receive(answer(0) + answer(1)) == [("a", 0)]
    assert "sent an answer to no request" in world.why


def test_the_first_failure_is_the_reason() -> None:
    """What follows from it does not replace it."""
    world = World()
    world.send("a", deadline_s=1.0)
    world.exchange.time_passed(1.0)
    world.exchange.lost(ConnectionResetError("reset by peer"))
    world.exchange.closed()
    assert "did not answer" in world.why


def test_a_lost_connection_says_how() -> None:
    """With the system's reason where there is one."""
    world = World()
    world.exchange.lost(ConnectionResetError("reset by peer"))
    assert "broker 2 closed the connection (reset by peer)" in world.why


@pytest.mark.parametrize(
    ("protocol", "answered", "words"),
    [
        ("PLAINTEXT", 0, "if the port is one of TLS, give the client its settings with"),
        ("SASL_PLAINTEXT", 0, "security.protocol=SSL or SASL_SSL: commands take `--config"),
        ("PLAINTEXT", 1, "if clients must log in there, .* security.protocol=SASL_PLAINTEXT:"),
        ("SSL", 1, "security.protocol=SASL_SSL:"),
        ("SSL", 0, "the broker stopped, or"),
        ("SASL_SSL", 1, "the broker stopped, or"),
        ("PLAINTEXT", 2, "the broker stopped, or"),
        ("", 0, "the broker stopped, or"),
    ],
)
def test_a_connection_that_ends_early_reminds_of_settings(
    protocol: str, answered: int, words: str
) -> None:
    """Before the first answer of TLS, behind the versions of a login; a broker is not reminded."""
    world = World(protocol)
    for number in range(answered + 1):
        world.send("a")
        if number < answered:
            world.receive(answer(number))
    world.exchange.lost(None)
    assert re.search(words, world.why)


def test_an_alert_of_tls_reminds_of_settings() -> None:
    """As brokers on Java's TLS answer plaintext."""
    world = World("PLAINTEXT")
    world.send("a")
    world.receive(b"\x15\x03\x03\x00\x02\x02\x50")
    assert "speaks TLS bytes" in world.why
    assert "`--config client.properties`" in world.why


def test_an_answer_that_was_not_taken_counts_as_unanswered() -> None:
    """The shell may close between two answers of one receive."""
    world = World()
    for waiter in "abc":
        world.send(waiter)
    data = answer(0) + answer(1)
    world.exchange.get_buffer()[: len(data)] = data
    answers = world.exchange.receive(len(data))
    assert answers.popleft()[0] == "a"
    world.exchange.closed()
    assert world.exchange.take_unanswered() == ["b", "c"]
    assert not answers


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    """KIP-511: the versions are in an answer the client did not ask for."""
    world = World()
    world.exchange.send(ApiVersionsRequest(), 4, 10.0, "a")
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    old = joined(encode_response(response, ApiKey.API_VERSIONS, 0, 0))
    assert world.receive(old) == [("a", 35)]


def test_correlation_ids_start_again_before_they_turn_negative() -> None:
    """The field is a signed 32-bit integer."""
    world = World()
    world.exchange._next_correlation_id = 0x7FFFFFFF
    assert correlation_id_of(world.send("a")) == 0x7FFFFFFF
    assert correlation_id_of(world.send("b")) == 0
    assert world.receive(answer(0x7FFFFFFF) + answer(0)) == [("a", 0), ("b", 0)]
