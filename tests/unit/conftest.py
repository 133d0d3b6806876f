"""No unit test opens a port: what needs one is in `tests/integration`."""

import os
import socket
import sys
from typing import Any


def _refuse_ports(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail a unit test that binds a socket of the network."""
    if event != "socket.bind" or "tests/unit/" not in os.environ.get("PYTEST_CURRENT_TEST", ""):
        return
    bound = arguments[0]
    assert bound.family not in (socket.AF_INET, socket.AF_INET6), (
        f"a unit test binds {arguments[1]}: move it to tests/integration"
    )


sys.addaudithook(_refuse_ports)
