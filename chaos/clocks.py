"""Wall clocks that jump: a small library, compiled here, stands between a process and its clock."""

import shutil
import struct
from pathlib import Path

from chaos.commands import run

_SOURCE = Path(__file__).parent / "clock_shim.c"


def compiler() -> str | None:
    """The C compiler of this machine, or None."""
    return shutil.which("cc") or shutil.which("gcc")


class Clock:
    """The wall clock of one broker, as far as it is off."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"{name}.clock"
        self._library = folder / "clock_shim.so"
        if not self._library.exists():
            found = compiler()
            assert found is not None, "whoever asks for clocks has seen to a compiler"
            run(found, "-shared", "-fPIC", "-O2", "-o", str(self._library), str(_SOURCE), "-ldl")
        self.jump(0)

    @property
    def environment(self) -> dict[str, str]:
        """What a process must be started with to go by this clock."""
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK_FILE": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Be so far off from now on, ahead or behind, at once."""
        # In place: the process has this very file in its memory.
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))
