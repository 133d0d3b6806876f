"""BrokerHandshake (key 1000, Ottla's own): a broker proves to another that both know the secret.

Sent twice on each new connection between brokers, before any other request: first with a challenge
and no proof, then with the proof for the challenge of the first response. The proof is described in
`ottla.broker.cluster.handshake`.
"""

from ottla.wire.notation import Message, binary, int16, int32, int64, string


class BrokerHandshakeRequest(Message, api_key=1000, versions="0", flexible="0+"):
    """A BrokerHandshake request; the second one of a connection repeats the first with a proof."""

    cluster_id: str = string()
    broker_id: int = int32()
    broker_epoch: int = int64()
    # The broker that the sender meant to connect to.
    receiver_id: int = int32()
    challenge: bytes = binary()
    proof: bytes = binary()


class BrokerHandshakeResponse(Message, api_key=1000, versions="0", flexible="0+"):
    """A BrokerHandshake response; the first one of a connection has the receiver's proof."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    broker_id: int = int32()
    broker_epoch: int = int64()
    challenge: bytes = binary()
    proof: bytes = binary()
