"""The share that one owner may take of a common limit, and which addresses are one owner.

An owner is a user, or an address without a login. Pure.
"""

from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address, IPv6Network
from typing import Final

# The least number of owners that can use up the whole limit.
_OWNERS_MIN: Final = 4


def fair_share(whole: int) -> int:
    """Return the share of one owner: a quarter of `whole`, and at least one."""
    return max(1, whole // _OWNERS_MIN)


# The prefix of an IPv4 address on a socket that serves both families.
MAPPED: Final = "::ffff:"


@lru_cache(maxsize=4096)
def counted_address(host: str) -> str:
    """Return the unit by which an address is counted: an IPv4 address, or an IPv6 address's /64.

    The machines of a network share the /64 of link-local addresses, so these are counted singly.
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
