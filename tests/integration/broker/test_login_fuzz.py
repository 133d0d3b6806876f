"""Damaged logins: a broker answers with an error or closes, serves nothing, and goes on.

By hand: `python -m tests.integration.broker.test_login_fuzz --count 1000000 --seed 1`.
"""

import argparse
import asyncio
import logging
import random
import resource
import struct
import tempfile
import time
from pathlib import Path

import pytest
from rig.issuer import Issuer, signed
from rig.secret_search import register

from ottla.base.errors import ErrorCode
from ottla.security.sasl.bearer import CLIENT_GIVES_UP, write_bearer
from ottla.security.sasl.client import ScramClient
from ottla.security.sasl.plain import write_plain
from ottla.wire.errors import WireError
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.integration.broker.inprocess import run
from tests.integration.broker.test_login import SCRAM, SETTINGS, credential, play

PASSWORD = "not known to the one who sends these"
register(PASSWORD)
MECHANISMS = ("SCRAM-SHA-256", "PLAIN", "OAUTHBEARER", "OAUTHBEARER", "GSSAPI", "")
AUTHENTICATE = 36


def frame_of(message, version):
    return b"".join(bytes(part) for part in encode_request(message, version, 7, "fuzz"))


def tokens(chance):
    """Messages of all mechanisms, none of which logs in."""
    user = chance.choice(["alice", "mallory", "a=2Cb", "x" * 300])
    client = ScramClient(SCRAM, user, "wrong", "clientnonce", {})
    proof = b"c=biws,r=clientnonce,p=" + b"A" * chance.choice([0, 4, 43, 44, 88])
    bearer = chance.choice([damaged(chance, chance.choice(BEARERS)), CLIENT_GIVES_UP])
    return [client.first, proof, write_plain(user, "wrong"), bearer, b"", chance.randbytes(40)]


ISSUER = Issuer()
STALE_S = 1_600_000_000


def bearers():
    """Messages with tokens that are wrong in one way each."""
    stale = ISSUER.token("alice", STALE_S)
    head, body, signature = stale.split(".")
    other = Issuer()
    claims = ISSUER.claims("alice", STALE_S, exp=9e9)
    tokens = [
        stale,
        other.token("alice", exp=9e9),
        signed(claims, ISSUER.keys[0], "ES256", kid="unknown"),
        signed({"exp": 9e9}, ISSUER.keys[0], "ES256"),
        f"eyJhbGciOiJub25lIn0.{body}.",
        f"eyJhbGciOiJIUzI1NiJ9.{body}.{signature}",
        f"{head}.{body}.",
        "x" * 20_000,
    ]
    return [write_bearer(each, {"traceId": "1"}) for each in tokens]


BEARERS = bearers()


def damaged(chance, content):
    """The bytes with few changes, or none."""
    content = bytearray(content)
    for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
        if not content:
            break
        place = chance.randrange(len(content))
        kind = chance.randrange(3)
        if kind == 0:
            content[place] = chance.randrange(256)
        elif kind == 1:
            del content[place : place + chance.randrange(1, 5)]
        else:
            content[place:place] = chance.randbytes(chance.randrange(1, 5))
    return bytes(content)


def conversation(chance):
    """Frames in a likely order, damaged inside; their sizes are mostly right."""
    handshake = SaslHandshakeRequest(mechanism=chance.choice(MECHANISMS))
    frames = [frame_of(ApiVersionsRequest(), chance.choice([0, 3]))] * chance.randrange(2)
    version = chance.randrange(2)
    frames.append(frame_of(handshake, version))
    # Half of the conversations are whole, so that what is judged is the token.
    is_whole = chance.random() < 0.5
    chosen = tokens(chance)
    if is_whole and handshake.mechanism == "OAUTHBEARER":
        chosen = [damaged(chance, each) for each in BEARERS] + [CLIENT_GIVES_UP]
    for token in chance.sample(chosen, chance.randrange(1, 4)):
        if version:
            request = SaslAuthenticateRequest(auth_bytes=token)
            frames.append(frame_of(request, chance.randrange(3)))
        else:
            frames.append(struct.pack(">i", len(token)) + token)
    frames.append(frame_of(MetadataRequest(topics=[]), 12))
    if chance.random() < 0.3 and not is_whole:
        chance.shuffle(frames)
    for frame in frames:
        body = frame[4:] if is_whole else damaged(chance, frame[4:])
        size = chance.randrange(-5, 70_000) if chance.random() < 0.02 else len(body)
        yield struct.pack(">i", size) + body


async def talk(port, chance):
    """One damaged conversation; the broker ends it, or waits for the rest of a frame."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"".join(conversation(chance)))
        writer.write_eof()
        received = await reader.read()
    except ConnectionError:
        return
    finally:
        writer.close()
    while len(received) >= 4:
        (size,) = struct.unpack_from(">i", received)
        answer, received = received[4 : 4 + size], received[4 + size :]
        try:
            _, authenticated = decode_response(AUTHENTICATE, 1, answer)
        except (WireError, ValueError):
            continue
        assert authenticated.error_code or not authenticated.auth_bytes.startswith(b"v=")
        # Only a token that was accepted gives a session that ends.
        assert not authenticated.session_lifetime_ms


async def talks(port, count, seed):
    chance = random.Random(seed)
    for number in range(0, count, 50):
        await asyncio.gather(*(talk(port, chance) for _ in range(min(50, count - number))))


MANY = {
    "sasl_enabled_mechanisms": "SCRAM-SHA-256,PLAIN,OAUTHBEARER",
    "sasl_plain_without_tls_enable": "true",
    "connection_failed_authentication_delay_ms": "0",
    "max_failed_authentication_rate": "1000000",
    "sasl_jaas_config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
    ),
}


def with_keys(folder):
    """The settings, with the issuer's keys in a file."""
    file = folder / "keys"
    file.write_bytes(ISSUER.jwks())
    url = f"file://{file}"
    return {
        **MANY,
        "sasl_oauthbearer_jwks_endpoint_url": url,
        "sasl_oauthbearer_allowed_urls": url,
        "sasl_oauthbearer_expected_audience": "kafka-cluster",
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_logins_neither_enter_nor_break_a_broker(seed, caplog, tmp_path):
    """The log has few lines, no failure of ours and no password; alice logs in afterwards."""

    async def scenario(broker, connect):
        await talks(broker.port, 300, seed)
        caller = await connect()
        assert (await caller.log_in()).error_code == ErrorCode.NONE

    caplog.set_level(logging.WARNING)
    play(scenario, **with_keys(tmp_path))
    assert "failed unexpectedly" not in caplog.text
    assert "OAUTHBEARER: its token" in caplog.text
    assert PASSWORD not in caplog.text
    # One for each kind of cause, and not one for each connection.
    assert sum("closing the connection" in line for line in caplog.text.splitlines()) < 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    unexpected = []

    class Watch(logging.Handler):
        def emit(self, record):
            if "unexpectedly" in record.getMessage():
                unexpected.append(record.getMessage())

    logging.getLogger("ottla").addHandler(Watch())
    logging.getLogger("ottla").propagate = False

    async def scenario(caller):
        broker = caller.broker
        await broker.parts.login.users.alter("alice", {SCRAM: credential(PASSWORD)})
        await talks(broker.port, 1000, given.seed)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began_s = time.perf_counter()
        await talks(broker.port, given.count, given.seed + 1)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        seconds = time.perf_counter() - began_s
        print(  # noqa: T201
            f"{given.count} in {seconds:.0f} s, {len(unexpected)} failures, {grown} KiB more"
        )
        assert not unexpected, unexpected[:5]

    with tempfile.TemporaryDirectory() as folder:
        settings = with_keys(Path(folder))
        run(scenario, {**SETTINGS, **{k.replace("_", "."): v for k, v in settings.items()}})


if __name__ == "__main__":
    main()
