"""This broker's present id and epochs, for all parts of it that must agree on them."""

from ottla.replica.standing import Standing


class OwnStanding:
    """Holds the broker's `Standing`; `current` is replaced with each registration."""

    __slots__ = ("current",)

    def __init__(self, current: Standing) -> None:
        self.current = current
