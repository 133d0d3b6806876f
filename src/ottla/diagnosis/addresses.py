"""Tries an address from the client's side: name, TCP, TLS or plaintext, Kafka's protocol, login.

Nothing is sent that changes anything. If the client's own way in fails, the port is asked in other
ways until it is known what answers there: Kafka in plaintext or over TLS, HTTP, or something else.
"""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import BrokerRefused, ClientError
from ottla.client.connection.connection import Connection, connect
from ottla.client.connection.security import ClientSecurity
from ottla.client.connection.view import Address
from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.parts import FileRegion

PATIENCE_S = 5.0
CLIENT_ID = "ottla-doctor"
# Where Kafka's brokers often listen; tried on this machine only, to find a mistaken port.
_USUAL_PORTS = (9092, 9093, 9094, 19092, 29092)
# A correlation id that no other protocol sends by chance.
_CORRELATION_ID = 0x6F74746C
_HEAD = struct.Struct(">ii")
_GET = b"GET / HTTP/1.0\r\n\r\n"


class Spoken(StrEnum):
    """What answers at a port."""

    KAFKA = "Kafka's protocol in plaintext"
    KAFKA_TLS = "Kafka's protocol over TLS"
    TLS = "TLS, and does not show which protocol is inside"
    HTTP = "HTTP"
    HTTPS = "HTTPS"
    OTHER = "another protocol"
    CLOSING = "nothing: it closes each connection"
    SILENT = "nothing: it accepts connections and never answers"


@dataclass(frozen=True, slots=True)
class AddressTrouble:
    """Why an address cannot be used, and what helps. `step` is the step that failed."""

    step: str
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ReachedAddress:
    """A usable address: its open connection, and the end of its certificate in ms, if it has one.

    `refused_ips` are IP addresses of the name that clients try before the one that answers.
    """

    connection: Connection
    expires_ms: int | None
    refused_ips: tuple[str, ...]


async def try_address(
    address: Address, security: ClientSecurity
) -> ReachedAddress | AddressTrouble:
    """Connect as a client with `security` does. The caller closes the connection."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM
            )
    except TimeoutError:
        return _unresolved(address, f"no answer of the name service in {PATIENCE_S:g} s")
    except (socket.gaierror, UnicodeError) as error:
        return _unresolved(address, getattr(error, "strerror", None) or str(error))
    refused: dict[str, str] = {}
    for ip in dict.fromkeys(str(entry[4][0]) for entry in found):
        why = await _refusal(ip, address.port)
        if why is None:
            break
        refused[ip] = why
    else:
        return await _unreachable(address, refused)
    try:
        connection = await connect(address, CLIENT_ID, PATIENCE_S, security=security)
    except ClientError as error:
        return await _explained(address, security, error)
    expires_ms = await _expiry_ms(address, security.tls()) if security.tls else None
    return ReachedAddress(connection, expires_ms, tuple(refused))


def is_loopback(host: str) -> bool:
    """Return whether a name or IP address always means the client's own machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# -- the steps


def _unresolved(address: Address, why: str) -> AddressTrouble:
    return AddressTrouble(
        "name",
        f"the name {address.host} does not resolve on this machine ({why})",
        "correct the name, or add it to DNS or the hosts file of this machine",
    )


async def _refusal(ip: str, port: int) -> str | None:
    """Return why no TCP connection can be opened; None if one can."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(ip, port)
    except TimeoutError:
        return f"no answer in {PATIENCE_S:g} s"
    except ConnectionRefusedError:
        return "refused"
    except OSError as error:
        return error.strerror or str(error)
    writer.close()
    return None


async def _unreachable(address: Address, refused: Mapping[str, str]) -> AddressTrouble:
    tried = ", ".join(f"{ip}: {why}" for ip, why in refused.items())
    if set(refused.values()) != {"refused"}:
        return AddressTrouble(
            "connection",
            f"{address} cannot be reached ({tried})",
            "a firewall drops packets, or this network has no way there: see security groups, VPN,"
            " and whether the machine is up",
        )
    return AddressTrouble(
        "connection",
        f"nothing listens at {address} ({tried})",
        f"start the broker, or correct the port{await _elsewhere(address)}",
    )


async def _elsewhere(address: Address) -> str:
    """Return where on this machine a broker does answer, as the end of a remedy."""
    if not is_loopback(address.host):
        return ""
    others = [Address(address.host, port) for port in _USUAL_PORTS if port != address.port]
    spoken = await asyncio.gather(*map(recognised, others))
    found = [
        f"{other} speaks {answer}"
        for other, (answer, _) in zip(others, spoken, strict=True)
        if answer in (Spoken.KAFKA, Spoken.KAFKA_TLS)
    ]
    return f"; {', '.join(found)}" if found else "; `ottla start` starts a broker"


async def _explained(
    address: Address, security: ClientSecurity, error: ClientError
) -> AddressTrouble:
    """Return why the connection of a client failed, by what answers at the port."""
    if isinstance(error, BrokerRefused) or error.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
        return _of_error("login", error)
    spoken, seen = await recognised(address)
    has_tls = security.tls is not None
    mismatch = f"{address} speaks {spoken}; this client has security.protocol={security.protocol}"
    if spoken is Spoken.KAFKA and has_tls:
        return AddressTrouble(
            "protocol",
            mismatch,
            "use the port of a TLS listener, or set security.protocol=PLAINTEXT (SASL_PLAINTEXT if"
            " clients log in) in the client's settings",
        )
    if spoken in (Spoken.KAFKA_TLS, Spoken.TLS) and not has_tls:
        return AddressTrouble(
            "protocol",
            mismatch,
            "give the client settings with security.protocol=SSL or SASL_SSL and"
            " ssl.truststore.location: commands take `--config client.properties`",
        )
    if spoken in (Spoken.KAFKA, Spoken.KAFKA_TLS, Spoken.TLS):
        trouble = _of_error("TLS" if has_tls else "login", error)
        names = await _names(address) if has_tls else ""
        shown = f" (its certificate is for {names})" if names else ""
        return AddressTrouble(trouble.step, trouble.cause + shown, trouble.remedy)
    if spoken is Spoken.SILENT:
        return AddressTrouble(
            "protocol",
            f"{address} accepts connections and does not answer within {PATIENCE_S:g} s",
            "if it is the broker's port, the broker hangs or is overloaded: see its log and its"
            " process; if not, correct the port",
        )
    said = f" (it sent {seen.decode('latin-1')!r})" if seen else ""
    return AddressTrouble(
        "protocol",
        f"{address} is not a Kafka listener: it speaks {spoken}{said}",
        "correct the port: `listeners` in the broker's settings has those of Kafka's protocol",
    )


def _of_error(step: str, error: ClientError) -> AddressTrouble:
    # Ottla's messages have this form: what happened; what to do.
    cause, _, remedy = error.message.partition("; ")
    return AddressTrouble(step, cause, remedy or "see the broker's log")


# -- what answers


class _Answer(NamedTuple):
    """The first bytes of an answer; whether the connection, with its handshake, was made."""

    seen: bytes = b""
    is_connected: bool = False
    is_late: bool = False

    @property
    def is_kafka(self) -> bool:
        return len(self.seen) >= 8 and _HEAD.unpack_from(self.seen)[1] == _CORRELATION_ID

    @property
    def is_tls(self) -> bool:
        return self.seen[:1] in (b"\x15", b"\x16") and self.seen[1:2] == b"\x03"

    @property
    def is_http(self) -> bool:
        return self.seen.startswith(b"HTTP/")

    @property
    def line(self) -> bytes:
        return self.seen.split(b"\r\n")[0][:40]


async def recognised(address: Address) -> tuple[Spoken, bytes]:
    """Find out what answers at an address; return it with the first bytes received."""
    question = ApiVersionsRequest()
    parts = encode_request(question, 0, _CORRELATION_ID, CLIENT_ID)
    kafka = b"".join(part for part in parts if not isinstance(part, FileRegion))
    plain = await _answer(address, kafka)
    if plain.is_kafka:
        return Spoken.KAFKA, b""
    if plain.is_http:
        return Spoken.HTTP, plain.line
    if plain.seen and not plain.is_tls:
        return Spoken.OTHER, plain.line
    inside = await _answer(address, kafka, _unverified())
    if inside.is_kafka:
        return Spoken.KAFKA_TLS, b""
    if inside.is_connected or plain.is_tls:
        web = await _answer(address, _GET, _unverified())
        return (Spoken.HTTPS if web.is_http else Spoken.TLS), web.line
    web = await _answer(address, _GET)
    if web.is_http:
        return Spoken.HTTP, web.line
    if web.seen:
        return Spoken.OTHER, web.line
    return (Spoken.SILENT if plain.is_late else Spoken.CLOSING), b""


async def _answer(address: Address, sent: bytes, tls: ssl.SSLContext | None = None) -> _Answer:
    """Send bytes over a new connection and return the beginning of the answer."""
    is_connected = False
    try:
        async with asyncio.timeout(PATIENCE_S / 2), _opened(address, tls) as (reader, writer):
            is_connected = True
            writer.write(sent)
            return _Answer(await reader.read(64), is_connected=True)
    except TimeoutError:
        return _Answer(is_connected=is_connected, is_late=True)
    except OSError:
        return _Answer(is_connected=is_connected)


@contextlib.asynccontextmanager
async def _opened(
    address: Address, tls: ssl.SSLContext | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(
        address.host,
        address.port,
        ssl=tls,
        server_hostname=None if tls is None else address.host,
    )
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


# -- certificates


def _unverified() -> ssl.SSLContext:
    """Return a context that accepts any certificate: to look at it, never to send a secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _names(address: Address) -> str:
    """Return the names in a certificate that this client does not accept; empty if unknown."""
    shown = await _certificate(address, _unverified(), is_binary=True)
    if not isinstance(shown, bytes):
        return ""
    # Only a trusted certificate is decoded, so trust exactly this one.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=shown)
    names = (await _certificate(address, context) or {}).get("subjectAltName", ())
    return ", ".join(name for _, name in names)


async def _expiry_ms(address: Address, tls: ssl.SSLContext) -> int | None:
    shown = await _certificate(address, tls)
    return int(ssl.cert_time_to_seconds(shown["notAfter"])) * 1000 if shown else None


async def _certificate(address: Address, tls: ssl.SSLContext, *, is_binary: bool = False) -> Any:
    """Return the certificate that a listener shows, as `getpeercert` does; None if it fails."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(PATIENCE_S), _opened(address, tls) as (_, writer):
            return writer.get_extra_info("ssl_object").getpeercert(is_binary)
    return None
