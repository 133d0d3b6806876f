"""This broker's present id and epochs, shared by all parts that must agree on them."""

from ottla.replica.registration import Registration


class OwnRegistration:
    """Holds the broker's `Registration`; `current` is replaced with each registration."""

    __slots__ = ("current",)

    def __init__(self, current: Registration) -> None:
        self.current = current
