"""UnregisterBroker (key 64): delete a broker's registration (KIP-631). Always flexible."""

from ottla.wire.notation import Message, int16, int32, string


class UnregisterBrokerRequest(Message, api_key=64, versions="0", flexible="0+"):
    """An UnregisterBroker request."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible="0+"):
    """An UnregisterBroker response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
