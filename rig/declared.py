"""Every request and response that is declared, whether a broker serves it or not."""

from importlib import import_module
from pkgutil import iter_modules

from ottla.wire import messages
from ottla.wire.notation import REQUESTS, RESPONSES, Message


def import_all() -> None:
    """Import the messages of all APIs, which declares them."""
    for module in iter_modules(messages.__path__):
        import_module(f"{messages.__name__}.{module.name}")


def declared() -> dict[int, tuple[type[Message], type[Message]]]:
    """The request and the response of each API, by key."""
    import_all()
    return {key: (REQUESTS[key], RESPONSES[key]) for key in sorted(REQUESTS)}
