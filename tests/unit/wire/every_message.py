"""Every message there is, in every version it has."""

from rig.declared import declared

from ottla.wire import stored
from ottla.wire.notation import Message


def classes() -> list[type[Message]]:
    """All requests, all responses, and all records that are stored."""
    found: list[type[Message]] = []
    for pair in declared().values():
        found += pair
    found += [
        value
        for value in vars(stored).values()
        if isinstance(value, type)
        and issubclass(value, Message)
        and value.__module__ == stored.__name__
        and value.__versions__[1] < 100
    ]
    return found


def versions(cls: type[Message]) -> range:
    """The versions of a class."""
    low, high = cls.__versions__
    return range(low, high + 1)
