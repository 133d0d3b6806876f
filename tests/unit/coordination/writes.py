"""Writes of one node, as the tests of stores make them."""

from ottla.coordination.interface.store import ANY_VERSION, Create, Delete, Set, Store


async def create(store: Store, path: str, data: bytes = b"") -> None:
    """Make one persistent node. Raises NodeExists, NoNode."""
    await store.multi([Create(path, data)])


async def set_data(store: Store, path: str, data: bytes, version: int = ANY_VERSION) -> int:
    """Replace one node's data and return its new version. Raises NoNode, BadVersion."""
    (result,) = await store.multi([Set(path, data, version)])
    assert isinstance(result, int)
    return result


async def delete(store: Store, path: str, version: int = ANY_VERSION) -> None:
    """Remove one node. Raises NoNode, BadVersion, NotEmpty."""
    await store.multi([Delete(path, version)])
