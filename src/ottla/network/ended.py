"""What stands where a connection was, so that nothing refers to it any more."""

import asyncio
from typing import Final


def serve_nothing(_frame: memoryview) -> None:
    """Of a connection that has ended."""


class _Ended(asyncio.BufferedProtocol):
    def get_buffer(self, sizehint: int) -> bytearray:
        return bytearray(sizehint)


# uvloop's TLS keeps methods of the protocol: this one is for all ended connections.
ENDED: Final = _Ended()
