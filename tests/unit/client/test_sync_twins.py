"""Plain calls are called as the asynchronous ones are."""

import inspect

import pytest

from ottla import client
from ottla.client import sync

# What differs on purpose: plain calls have no transaction to await.
OWN = {
    "Producer": {"transaction"},
    "Consumer": {"close", "fetch_batches"},
}


def calls(kind: type) -> dict[str, str]:
    """Parameters of each public method."""
    return {
        name: str(inspect.signature(method).replace(return_annotation=None))
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize("name", sorted(OWN))
def test_parameters_are_those_of_the_asynchronous_method(name: str) -> None:
    """Names, kinds, types and defaults; a call added to one of both is found here, too."""
    plain, asynchronous = calls(getattr(sync, name)), calls(getattr(client, name))
    own = OWN[name]
    assert {k: v for k, v in plain.items() if k not in own} == {
        k: v for k, v in asynchronous.items() if k not in own
    }


@pytest.mark.parametrize("name", sorted(OWN))
def test_help_is_not_empty(name: str) -> None:
    """Every plain call says what it does."""
    kind = getattr(sync, name)
    assert [call for call in calls(kind) if not getattr(kind, call).__doc__] == []
