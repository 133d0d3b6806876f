"""The chance seam: where generators and identities come from.

In a process of its own that is the system; in a simulation it is the seed.
"""

import os
from contextvars import ContextVar
from random import Random  # noqa: TID251  # The one place that makes unseeded ones.
from uuid import UUID

_source: ContextVar[Random | None] = ContextVar("chance", default=None)


def new_random() -> Random:
    """A generator of its own: of no known seed, unless a simulation gave this world one."""
    source = _source.get()
    return Random() if source is None else Random(source.getrandbits(64))


def random_bytes(count: int) -> bytes:
    """Unguessable bytes, outside of simulations."""
    source = _source.get()
    return os.urandom(count) if source is None else source.randbytes(count)


def new_uuid() -> UUID:
    """A random identity (version 4)."""
    return UUID(bytes=random_bytes(16), version=4)


def set_chance(source: Random) -> None:
    """Let all of this be drawn from `source`, in this context and in what it starts."""
    _source.set(source)
