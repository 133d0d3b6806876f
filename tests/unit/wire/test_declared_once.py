"""A key belongs to one API: without this, a second declaration would have no effect."""

from collections import Counter
from importlib import import_module

from rig.declared import declared

from ottla.wire.notation import Message


def test_each_key_has_one_request_and_one_response() -> None:
    """Of all messages in `ottla.wire.messages`."""
    modules = {kind.__module__ for pair in declared().values() for kind in pair}
    kinds = [
        value
        for module in sorted(modules)
        for value in vars(import_module(module)).values()
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module
    ]
    for suffix in ("Request", "Response"):
        keys = Counter(kind.__api_key__ for kind in kinds if kind.__name__.endswith(suffix))
        assert [key for key, count in keys.items() if key >= 0 and count > 1] == []
        assert len(keys) > 70
