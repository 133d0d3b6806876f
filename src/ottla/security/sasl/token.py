"""A token of OAUTHBEARER, as programs give it."""

from collections.abc import Callable
from typing import NamedTuple


class Token(NamedTuple):
    """A token, and when it expires in seconds since 1970.

    None: its own claim `exp` says so; one that is no JWT is asked for at each login.
    """

    text: str
    expires_s: float | None = None

    def __repr__(self) -> str:
        return f"Token(expires_s={self.expires_s})"


# Gives a new token. May block; is called in a thread.
Supplier = Callable[[], Token | str]
