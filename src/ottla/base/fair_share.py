"""How much one owner may have of what all clients share, so that none takes everything.

An owner is a user, or an address without a login. Pure.
"""

from typing import Final

# So many owners may fill the whole, and no fewer.
_OWNERS_MIN: Final = 4


def fair_share(whole: int) -> int:
    """The part of one owner: a quarter, and at least one."""
    return max(1, whole // _OWNERS_MIN)
