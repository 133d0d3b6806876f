"""Chooses the version of each API: the newest that client and broker know (KIP-35)."""

from collections.abc import Iterable

from ottla.client.common.errors import UnsupportedByBroker
from ottla.wire.api import ApiKey, key_name
from ottla.wire.messages.api_versions import ApiVersion
from ottla.wire.notation import REQUESTS

# Later versions name a topic only by its id, or give an API a meaning that this client does not
# use, or are unstable in Kafka; these versions are otherwise equivalent.
_OWN_MAXIMUM: dict[int, int] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.INIT_PRODUCER_ID: 5,
}


class AgreedVersions:
    """The version per API; an API without a common version is missing.

    Computed on first use, because an API's messages are imported by the code that sends them.
    """

    __slots__ = ("_advertised", "_agreed")

    def __init__(self, advertised: Iterable[ApiVersion]) -> None:
        self._advertised = {each.api_key: each for each in advertised}
        self._agreed: dict[int, int] = {}

    def get(self, key: int) -> int | None:
        """The agreed version of `key`; None where there is none."""
        version = self._agreed.get(key)
        if version is None and key in self._advertised and key in REQUESTS:
            theirs, (low, high) = self._advertised[key], REQUESTS[key].__versions__
            newest = min(theirs.max_version, high, _OWN_MAXIMUM.get(key, high))
            if newest >= max(theirs.min_version, low):
                version = self._agreed[key] = newest
        return version

    def __contains__(self, key: int) -> bool:
        return self.get(key) is not None


def version_for(agreed: AgreedVersions, key: int, address: str) -> int:
    """The agreed version of `key`. Raises UnsupportedByBroker where there is none."""
    version = agreed.get(key)
    if version is None:
        raise UnsupportedByBroker(
            f"the broker at {address} and this client share no version of {key_name(key)}; "
            "upgrade the older of the two, or use a call that does not need it"
        )
    return version
