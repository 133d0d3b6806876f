"""Messages about the use of topics by clients and their delays, all of them Ottla's own."""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class ClientUsageRequest(Message, api_key=1031, versions="0", flexible="0+"):
    """ClientUsage (key 1031, Ottla's own): list the clients that use topics.

    Each broker knows only what it served, so the request is sent to all brokers. Null means all
    topics. Times are in ms since 1970; -1 means none.
    """

    topics: list[str] | None = array(string, nullable="0+")


class ClientUse(Message):
    """An element of `TopicUse.uses`."""

    # `produce` or `fetch`.
    direction: str = string()
    client_id: str = string()
    principal: str = string()
    # Name and version of the client's library, empty if it sent none.
    library: str = string()
    first_ms: int = int64(default=-1)
    last_ms: int = int64(default=-1)
    size_bytes: int = int64()


class TopicUse(Message):
    """An element of `ClientUsageResponse.topics`.

    The broker knows of every use since `since_ms`; -1 means that it does not watch the topic yet.
    """

    topic: str = string()
    since_ms: int = int64(default=-1)
    uses: list[ClientUse] = array(ClientUse)


class ClientUsageResponse(Message, api_key=1031, versions="0", flexible="0+"):
    """A ClientUsage response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    # Before its start at that time, after a crash, uses of a minute may be missing.
    gap_ms: int = int64(default=-1)
    topics: list[TopicUse] = array(TopicUse)


class ClientDelaysRequest(Message, api_key=1032, versions="0", flexible="0+"):
    """ClientDelays (key 1032, Ottla's own): explain the slow and failed requests of client ids.

    Sent to all brokers. `ottla.broker.usage.delays` has the reasons.
    """

    client_ids: list[str] = array(string)


class DelayReason(Message):
    """An element of `ClientDelay.reasons`: slow requests with the same reason since `first_ms`."""

    api: int = int16()
    reason: str = string()
    detail: str = string()
    # Empty, and -1, if no single partition made the requests wait.
    topic: str = string()
    partition: int = int32(default=-1)
    first_ms: int = int64(default=-1)
    last_ms: int = int64(default=-1)
    count: int = int64()
    total_ms: int = int64()
    longest_ms: int = int64()


class SlowRequest(Message):
    """An element of `ClientDelay.slowest`; `at_ms` is when it was answered."""

    api: int = int16()
    reason: str = string()
    detail: str = string()
    topic: str = string()
    partition: int = int32(default=-1)
    at_ms: int = int64(default=-1)
    took_ms: int = int64()


class ClientFailure(Message):
    """An element of `ClientDelay.failures`: a failure that repeats since `first_ms`."""

    api: int = int16()
    code: int = int16()
    topic: str = string()
    partition: int = int32(default=-1)
    first_ms: int = int64(default=-1)
    last_ms: int = int64(default=-1)
    count: int = int64()
    # What was said the last time.
    detail: str = string()


class ClientDelay(Message):
    """An element of `ClientDelaysResponse.clients`."""

    client_id: str = string()
    since_ms: int = int64(default=-1)
    reasons: list[DelayReason] = array(DelayReason)
    slowest: list[SlowRequest] = array(SlowRequest)
    failures: list[ClientFailure] = array(ClientFailure)


class ClientDelaysResponse(Message, api_key=1032, versions="0", flexible="0+"):
    """A ClientDelays response; clients without slow or failed requests are left out."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    clients: list[ClientDelay] = array(ClientDelay)
