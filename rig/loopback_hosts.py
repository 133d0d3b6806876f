"""Hosts that are addresses of this machine's loopback, where network namespaces cannot be made.

Programs on them reach each other and share disks; what they are not is cut off from each other.
"""

from collections.abc import Sequence


class LoopbackHosts:
    """A host is 127.0.0.2 and so on; this machine has an address among them, too."""

    here = "127.0.0.9"

    def __init__(self, names: Sequence[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(names, start=2)}

    def address(self, name: str) -> str:
        """The address under which the others reach a host."""
        return f"127.0.0.{self._numbers[name]}"

    def inside(self, _name: str) -> list[str]:
        """What to put before a command so that it runs on a host: nothing."""
        return []
