"""How a broker answers requests of a login in a wrong order, as lines that can be compared."""

from rig.probe import receive_frame
from rig.wire_client import WireClient, sized

from ottla.base.errors import ErrorCode
from ottla.security.sasl.plain import write_plain
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.notation import Message
from tests.integration.protocol.security.pair import Ports

_RIGHT = write_plain("alice", "alice-secret")
# A step: a request in a version, or bytes without a header.
_Step = tuple[Message, int] | bytes


def _hello(mechanism: str = "PLAIN", version: int = 1) -> _Step:
    return SaslHandshakeRequest(mechanism=mechanism), version


def _token(content: bytes = _RIGHT, version: int = 2) -> _Step:
    return SaslAuthenticateRequest(auth_bytes=content), version


_VERSIONS: _Step = ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3
_METADATA: _Step = MetadataRequest(topics=[]), 12
_ORDERS: dict[str, tuple[_Step, ...]] = {
    "login": (_VERSIONS, _hello(), _token(), _METADATA),
    "login without versions": (_hello(), _token(), _METADATA),
    "authenticate v0": (_hello(), _token(version=0), _METADATA),
    "authenticate v1": (_hello(), _token(version=1), _METADATA),
    "authenticate first": (_token(),),
    "metadata first": (_METADATA,),
    "versions, then authenticate": (_VERSIONS, _token()),
    "versions, then metadata": (_VERSIONS, _METADATA),
    "versions twice": (_VERSIONS, _VERSIONS),
    "handshake twice": (_hello(), _hello(), _token()),
    "handshake twice, another mechanism": (_hello(), _hello("SCRAM-SHA-256")),
    "handshake, versions": (_hello(), _VERSIONS, _token()),
    "handshake, versions, handshake": (_hello(), _VERSIONS, _hello()),
    "unknown mechanism": (_hello("GSSAPI"), _hello()),
    "unknown mechanism, v0": (_hello("GSSAPI", 0), _hello()),
    "empty mechanism": (_hello(""), _hello()),
    "mechanism in small letters": (_hello("plain"), _hello()),
    "handshake v0": (_hello(version=0), _RIGHT, _METADATA),
    "handshake v0, versions before": (_VERSIONS, _hello(version=0), _RIGHT, _METADATA),
    "handshake v0, authenticate": (_hello(version=0), _token()),
    "handshake v0, wrong password": (_hello(version=0), write_plain("alice", "x")),
    "handshake v1, bytes": (_hello(), _RIGHT),
    "bytes first": (_RIGHT,),
    "logged in, handshake": (_hello(), _token(), _hello(), _METADATA),
    "logged in, authenticate": (_hello(), _token(), _token(), _METADATA),
    "logged in, versions": (_hello(), _token(), _VERSIONS, _METADATA),
    "logged in, handshake v0": (_hello(), _token(), _hello(version=0), _METADATA),
    "logged in, handshake, authenticate": (_hello(), _token(), _hello(), _token(), _METADATA),
    "wrong password": (_hello(), _token(write_plain("alice", "x")), _METADATA),
    "unknown user": (_hello(), _token(write_plain("mallory", "x"))),
    "empty token": (_hello(), _token(b"")),
    "no password": (_hello(), _token(write_plain("alice", ""))),
    "no user": (_hello(), _token(write_plain("", "x"))),
    "another authorization id": (_hello(), _token(b"bob\0alice\0alice-secret")),
    "the same authorization id": (_hello(), _token(b"alice\0alice\0alice-secret"), _METADATA),
    "four parts": (_hello(), _token(b"\0alice\0alice-secret\0")),
    "no text": (_hello(), _token(b"\0alice\0\xff\xfe")),
    "scram, rubbish": (_hello("SCRAM-SHA-256"), _token(b"rubbish")),
    "scram, unknown user": (
        _hello("SCRAM-SHA-256"),
        _token(b"n,,n=mallory,r=abc,x"),
    ),
    "scram, empty": (_hello("SCRAM-SHA-256"), _token(b"")),
    "scram, binding": (_hello("SCRAM-SHA-256"), _token(b"p=tls-unique,,n=a,r=abc")),
}
# Kafka parses such a request and answers with an error of its own kind; here the connection ends,
# as with all others that are no login.
DIFFERENT = ("handshake, metadata", (_hello(), _METADATA), "closed", "NONE")
_IN_THE_CLEAR: dict[str, tuple[_Step, ...]] = {
    "in the clear, handshake": (_hello(), _METADATA),
    "in the clear, handshake v0": (_hello(version=0), _METADATA),
    "in the clear, handshake, unknown mechanism": (_hello("GSSAPI"), _METADATA),
    "in the clear, authenticate": (_token(), _METADATA),
}


def transcript(ports: Ports) -> list[str]:
    """Each order, with what was answered to each step until the broker closed."""
    return [
        f"{what}: {_play(port, steps)}"
        for port, orders in ((ports.sasl, _ORDERS), (ports.plain, _IN_THE_CLEAR))
        for what, steps in orders.items()
    ]


def differing(ports: Ports) -> str:
    """The last answer of the order that is answered otherwise on purpose."""
    return _play(ports.sasl, DIFFERENT[1]).rpartition(", ")[2]


def _play(port: int, steps: tuple[_Step, ...]) -> str:
    answers: list[str] = []
    with WireClient(port) as client:
        for step in steps:
            try:
                answers.append(_answer(client, step))
            except (ConnectionError, EOFError, AssertionError) as error:
                if isinstance(error, AssertionError) and "closed" not in str(error):
                    raise
                answers.append("closed")
                break
        else:
            if answers[-1] not in ("NONE", "token"):
                answers.append(_end(client))
    return ", ".join(answers)


def _answer(client: WireClient, step: _Step) -> str:
    if isinstance(step, bytes):
        client.send(sized(step))
        receive_frame(client.socket)
        return "token"
    message, version = step
    answer = client.call(message, version)
    name = ErrorCode(getattr(answer, "error_code", 0)).name
    mechanisms = getattr(answer, "mechanisms", None)
    return name if mechanisms is None else f"{name} {sorted(mechanisms)}"


def _end(client: WireClient) -> str:
    """Whether the broker closes by itself now."""
    client.socket.settimeout(2)
    try:
        return "closed" if client.closed_by_peer() else "more"
    except TimeoutError:
        return "open"
