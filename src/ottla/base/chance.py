"""The source of random generators and identities, which a simulation can replace.

In a normal process the source is the system; in a simulation it is the seed.
"""

import os
from contextvars import ContextVar
from random import Random  # noqa: TID251  # The one place that makes unseeded generators.
from uuid import UUID

_source: ContextVar[Random | None] = ContextVar("chance", default=None)


def new_random() -> Random:
    """Return a new generator: unseeded, unless a simulation has set a source."""
    source = _source.get()
    return Random() if source is None else Random(source.getrandbits(64))


def random_bytes(count: int) -> bytes:
    """Return bytes that cannot be guessed, except in a simulation."""
    source = _source.get()
    return os.urandom(count) if source is None else source.randbytes(count)


def new_uuid() -> UUID:
    """A random identity (version 4)."""
    return UUID(bytes=random_bytes(16), version=4)


def set_chance(source: Random) -> None:
    """Use `source` for all random values, in this context and in tasks that it starts."""
    _source.set(source)
