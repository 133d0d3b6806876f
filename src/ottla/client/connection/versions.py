"""Which version of each API to speak with a broker: the newest both sides know (KIP-35)."""

from collections.abc import Iterable

from ottla.client.common.errors import UnsupportedByBroker
from ottla.wire.api import ApiKey, key_name
from ottla.wire.messages.api_versions import ApiVersion
from ottla.wire.notation import REQUESTS

# From these versions on, a topic is named by its id alone, or an API means something this
# client does not use, or is not stable in Kafka; the version before says the same.
_OWN_MAXIMUM: dict[int, int] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.INIT_PRODUCER_ID: 5,
}


class AgreedVersions:
    """The version to use per API; an API without a common version is not in it.

    Found when it is first asked for: the messages of an API are imported with what sends them.
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
