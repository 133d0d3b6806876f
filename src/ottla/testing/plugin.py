"""The pytest plugin: the fixture `ottla_broker` is a broker of its own for each test that uses it.

`ottla` is an older name of the same fixture; inside such a test it hides the package `ottla`.

The plugin imports no part of the broker until a test uses it, so that other test runs do not
become slower. pytest rewrites the asserts of every module of a distribution that has a plugin:
it would compile Ottla's hundreds of modules again. `_AsInstalled` prevents that.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from ottla import _compiled

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


class _AsInstalled:
    """A meta-path finder before pytest's, by which Ottla's modules are imported unchanged."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002  # The import system's signature.
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, path) if fullname.startswith("ottla.") else None


# Placed after the guard, which skips stale extensions.
_guards = [i for i, f in enumerate(sys.meta_path) if isinstance(f, _compiled.ExtensionGuard)]
sys.meta_path.insert(max(_guards, default=-1) + 1, _AsInstalled())


@pytest.fixture
def ottla_broker() -> Iterator["Broker"]:
    """A running broker with its data in memory; `ottla_broker.bootstrap` is its address."""
    import ottla.testing  # noqa: PLC0415  # Slow, so imported only if a test uses a broker.

    with ottla.testing.Broker() as broker:
        yield broker


@pytest.fixture
def ottla(ottla_broker: "Broker") -> "Broker":
    """Return the broker of `ottla_broker`."""
    return ottla_broker


@pytest.fixture
def ottla_secure_broker() -> Iterator["Broker"]:
    """A broker as `ottla_broker`, with TLS, logins and ACLs; `login` has the clients' settings."""
    import ottla.testing  # noqa: PLC0415  # Slow, so imported only if a test uses a broker.

    with ottla.testing.Broker(secure=True) as broker:
        yield broker
