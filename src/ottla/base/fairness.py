"""The share that one owner may take of what all clients use, and the address that counts as one.

An owner is a user, or an address without a login. Pure.
"""

from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address, IPv6Network
from typing import Final

# So many owners may fill the whole, and no fewer.
_OWNERS_MIN: Final = 4


def fair_share(whole: int) -> int:
    """The part of one owner: a quarter, and at least one."""
    return max(1, whole // _OWNERS_MIN)


# The prefix of an IPv4 address on a socket that serves both families.
MAPPED: Final = "::ffff:"


@lru_cache(maxsize=4096)
def counted_address(host: str) -> str:
    """The unit in which an address counts: an IPv4 address itself, an IPv6 address's /64.

    The machines of a network share the /64 of link-local addresses: these count by themselves.
    """
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    if address.is_link_local or address.is_loopback:
        return host
    return str(IPv6Network((address, 64), strict=False))
