"""Which version of each API to speak with a broker: the newest both sides know (KIP-35)."""

from collections.abc import Iterable

from ottla.client.errors import UnsupportedByBroker
from ottla.wire.api import API, ApiKey
from ottla.wire.messages.api_versions import ApiVersion
from ottla.wire.notation import Message

# From these versions on, a topic is named by its id alone, or an API means something this
# client does not use; the version before says the same by name.
_OWN_MAXIMUM = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}


def key_of(message: Message) -> ApiKey:
    """The API that a request belongs to."""
    return ApiKey(message.__api_key__)


def negotiate(advertised: Iterable[ApiVersion]) -> dict[ApiKey, int]:
    """The version to use per API; APIs without a common version are left out."""
    chosen: dict[ApiKey, int] = {}
    for entry in advertised:
        if entry.api_key not in API:
            continue
        key = ApiKey(entry.api_key)
        api = API[key]
        newest = min(entry.max_version, api.max_version, _OWN_MAXIMUM.get(key, api.max_version))
        if newest >= max(entry.min_version, api.min_version):
            chosen[key] = newest
    return chosen


def version_for(chosen: dict[ApiKey, int], key: ApiKey, address: str) -> int:
    """The agreed version of `key`. Raises UnsupportedByBroker where there is none."""
    version = chosen.get(key)
    if version is None:
        raise UnsupportedByBroker(
            f"the broker at {address} and this client share no version of {key.name}; "
            "upgrade the older of the two, or use a call that does not need it"
        )
    return version
