"""Tokens for OAUTHBEARER that the program itself gives."""

from typing import Final

from ottla.security.sasl.token import Supplier

_suppliers: Final[list[Supplier]] = []


def supply_tokens(supplier: Supplier | None) -> None:
    """Have `supplier` give the tokens of all clients that this process makes from now on.

    It returns a JWT as text, or a `Token`; it is called in a thread when a client logs in and most
    of the last token's time is over, and may block. None: tokens come from
    `sasl.oauthbearer.token.endpoint.url` again. The settings (OTTLA_CONFIG) name the mechanism,
    OAUTHBEARER, and need nothing more for it.
    """
    _suppliers[:] = [] if supplier is None else [supplier]


def supplier_of_program() -> Supplier | None:
    """What the program has given."""
    return _suppliers[0] if _suppliers else None
