"""CRC-32C (Castagnoli), computed in C: the checksum of record batches."""

from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any


def _in_c() -> Callable[..., int]:
    """Return the C function, imported without the package around it.

    The package would look up its own version and import a command line, which is a tenth of the
    time in which a broker starts.
    """
    package = find_spec("crc32c")
    folders = None if package is None else package.submodule_search_locations
    spec = None if folders is None else PathFinder.find_spec("crc32c._crc32c", folders)
    if spec is None or spec.loader is None:
        # If the module is missing or has another shape, the package is imported.
        module: Any = import_module("crc32c")
    else:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


_crc32c = _in_c()


def checksum(buffer: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of `buffer`, continuing `value`; 32 bits, unsigned."""
    return _crc32c(buffer, value)
