"""The handshake by which two brokers prove that they belong to one cluster.

Pure. Each side sends a challenge of random bytes, and answers the other's challenge with an
HMAC-SHA256, keyed by the cluster's secret, over its role, the cluster id, both brokers with their
epochs, and both challenges. A recorded handshake cannot be replayed, because the challenges are new
each time. An answer cannot be reflected to its sender, because the role differs. The handshake
proves which broker opened the connection; it does not encrypt the traffic.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.wire.messages.between_brokers import BrokerHandshakeRequest, BrokerHandshakeResponse

# `random_bytes(count)`: `secrets.token_bytes`, or a seeded one in a simulation.
RandomBytes = Callable[[int], bytes]

_CHALLENGE_BYTES = 32
_OPENER = b"ottla broker handshake 1, opener"
_RECEIVER = b"ottla broker handshake 1, receiver"
SECRET_REMEDY = (
    "all brokers of a cluster take the secret from its store (/cluster/secret): check that both "
    "use the same store"
)


class Party(NamedTuple):
    """A broker under one of its registrations."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class Credentials:
    """A broker's id, epoch and cluster, and the cluster's secret."""

    broker_id: BrokerId
    cluster_id: str
    secret: bytes
    random_bytes: RandomBytes
    # A callable, because the epoch changes when the broker registers again.
    broker_epoch: Callable[[], int]


class Opener:
    """The side that opens the connection. Call `first`, `second`, `finish` in this order."""

    def __init__(self, own: Credentials, receiver_id: int) -> None:
        self._secret = own.secret
        self._receiver_id = receiver_id
        self._request = BrokerHandshakeRequest(
            cluster_id=own.cluster_id,
            broker_id=own.broker_id,
            broker_epoch=own.broker_epoch(),
            receiver_id=receiver_id,
            challenge=own.random_bytes(_CHALLENGE_BYTES),
        )

    def first(self) -> BrokerHandshakeRequest:
        """Return the first request."""
        return self._request

    def second(self, response: BrokerHandshakeResponse) -> BrokerHandshakeRequest:
        """Return the second request, with this broker's proof, after the first response.

        Raises OttlaError if the proof in the response is wrong.
        """
        _check(response, self._receiver_id)
        expected = _proof(self._secret, _RECEIVER, self._request, response)
        if not hmac.compare_digest(expected, response.proof):
            raise OttlaError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"what answers as broker {self._receiver_id} does not know the cluster's secret; "
                + SECRET_REMEDY,
            )
        self._request.proof = _proof(self._secret, _OPENER, self._request, response)
        return self._request

    def finish(self, response: BrokerHandshakeResponse) -> Party:
        """Return the proven broker at the other end. Raises OttlaError if it rejects this one."""
        _check(response, self._receiver_id)
        return Party(response.broker_id, response.broker_epoch)


class _Stage(Enum):
    WAITS_FOR_CHALLENGE = auto()
    WAITS_FOR_PROOF = auto()
    PROVEN = auto()
    REFUSED = auto()


class Receiver:
    """The side that accepts the connection; one object per connection.

    `proven` is the broker at the other end after a successful handshake.
    """

    def __init__(self, own: Credentials) -> None:
        self.proven: Party | None = None
        self._own = own
        self._stage = _Stage.WAITS_FOR_CHALLENGE

    def on_request(
        self, request: BrokerHandshakeRequest, known_epoch: int
    ) -> BrokerHandshakeResponse:
        """Answer a request. `known_epoch` is the highest known epoch of the sender's broker id.

        Raises OttlaError with cause and remedy if the handshake fails; it cannot succeed on this
        connection after that.
        """
        stage, self._stage = self._stage, _Stage.REFUSED
        self.proven = None
        match stage:
            case _Stage.WAITS_FOR_CHALLENGE:
                self._check_claims(request, known_epoch)
                self._first = request
                self._answer = BrokerHandshakeResponse(
                    broker_id=self._own.broker_id,
                    broker_epoch=self._own.broker_epoch(),
                    challenge=self._own.random_bytes(_CHALLENGE_BYTES),
                )
                self._answer.proof = _proof(self._own.secret, _RECEIVER, request, self._answer)
                self._stage = _Stage.WAITS_FOR_PROOF
                return self._answer
            case _Stage.WAITS_FOR_PROOF:
                expected = _proof(self._own.secret, _OPENER, self._first, self._answer)
                if not hmac.compare_digest(expected, request.proof):
                    raise OttlaError(
                        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                        f"a peer that claims to be broker {self._first.broker_id} does not "
                        f"know the cluster's secret; {SECRET_REMEDY}",
                    )
                self._stage = _Stage.PROVEN
                self.proven = Party(self._first.broker_id, self._first.broker_epoch)
                return BrokerHandshakeResponse(
                    broker_id=self._answer.broker_id, broker_epoch=self._answer.broker_epoch
                )
            case _:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST,
                    "the handshake of this connection is over; open another connection",
                )

    def _check_claims(self, request: BrokerHandshakeRequest, known_epoch: int) -> None:
        """Raise OttlaError with a remedy for a wrong cluster id, broker id or epoch."""
        if request.cluster_id != self._own.cluster_id:
            raise OttlaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"broker {request.broker_id} belongs to cluster {request.cluster_id}, and this is "
                f"cluster {self._own.cluster_id}; check which store and addresses it was given",
            )
        if request.broker_id == self._own.broker_id:
            raise OttlaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"two brokers have node.id {request.broker_id}; change node.id of one",
            )
        if request.receiver_id != self._own.broker_id:
            raise OttlaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"broker {request.broker_id} connected to broker {self._own.broker_id}, but meant "
                f"broker {request.receiver_id}; check the advertised.listeners of both",
            )
        if request.broker_epoch < known_epoch:
            raise OttlaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"broker {request.broker_id} has epoch {request.broker_epoch}, and epoch "
                f"{known_epoch} has registered since; if two processes have this node.id, stop "
                "one of them",
            )
        if len(request.challenge) < _CHALLENGE_BYTES or request.proof:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"the handshake of broker {request.broker_id} does not begin with a challenge; "
                "do the two run different releases?",
            )


def _check(response: BrokerHandshakeResponse, receiver_id: int) -> None:
    if response.error_code != ErrorCode.NONE:
        raise OttlaError(
            ErrorCode(response.error_code),
            f"broker {receiver_id} refuses this broker: {response.error_message}",
        )
    if response.broker_id != receiver_id:
        raise OttlaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"broker {response.broker_id} answered where broker {receiver_id} was expected; check "
            "the advertised.listeners of both",
        )


def _proof(
    secret: bytes, role: bytes, request: BrokerHandshakeRequest, response: BrokerHandshakeResponse
) -> bytes:
    """Compute the HMAC over the sender's role, ids, epochs and challenges.

    Each piece is prefixed by its length.
    """
    pieces = (
        role,
        request.cluster_id.encode(),
        b"%d %d" % (request.broker_id, request.broker_epoch),
        b"%d %d" % (response.broker_id, response.broker_epoch),
        request.challenge,
        response.challenge,
    )
    said = b"".join(len(piece).to_bytes(4) + piece for piece in pieces)
    return hmac.digest(secret, said, "sha256")
