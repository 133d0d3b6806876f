"""The pytest plugin: the fixture `ottla` is a broker of its own for each test that asks.

Imports nothing of the broker until a test uses it, so that having Ottla installed costs
other test runs nothing.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture
def ottla() -> Iterator["Broker"]:
    """A running broker with its data in memory; `ottla.bootstrap` is its address."""
    import ottla.testing  # noqa: PLC0415  # Only tests that ask for a broker pay for it.

    with ottla.testing.Broker() as broker:
        yield broker
