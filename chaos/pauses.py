"""Threads that pause where it hurts: a small library between librdkafka and the C library.

What a busy machine does once in many hours, an interruption between two steps of one thread while
another goes on, it does each time.
"""

from pathlib import Path

from chaos.clocks import compiler
from chaos.commands import run

_SOURCE = Path(__file__).parent / "pause_shim.c"


def environment(folder: Path) -> dict[str, str]:
    """What a producer must be started with to pause; nothing where there is no C compiler."""
    found = compiler()
    if found is None:
        return {}
    library = folder / "pause_shim.so"
    if not library.exists():
        run(found, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE))
    return {"LD_PRELOAD": str(library)}
