"""The pytest plugin: the fixture `ottla_broker` is a broker of its own for each test that uses it.

`ottla` is the same fixture under its first name, which hides the package inside such a test.

Imports nothing of the broker until a test uses it, so that having Ottla installed costs
other test runs nothing.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture
def ottla_broker() -> Iterator["Broker"]:
    """A running broker with its data in memory; `ottla_broker.bootstrap` is its address."""
    import ottla.testing  # noqa: PLC0415  # Only tests that ask for a broker pay for it.

    with ottla.testing.Broker() as broker:
        yield broker


@pytest.fixture
def ottla(ottla_broker: "Broker") -> "Broker":
    """The broker of `ottla_broker`."""
    return ottla_broker


@pytest.fixture
def ottla_secure_broker() -> Iterator["Broker"]:
    """As `ottla_broker`, with TLS, logins and ACLs; `….login` has the settings of clients."""
    import ottla.testing  # noqa: PLC0415  # Only tests that ask for a broker pay for it.

    with ottla.testing.Broker(secure=True) as broker:
        yield broker
