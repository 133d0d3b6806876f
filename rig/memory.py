"""Memory that the machine really has, before something is measured that writes much.

On a virtual machine the first touch of a page that the host has not handed out yet costs the
guest many times what writing to it costs; pages that were freed go back to the host after a
while. A broker that writes gigabytes would be measured by that, not by its own work.
"""

import mmap
import subprocess
import sys


def warm(size_bytes: int) -> None:
    """Touch `size_bytes` of free memory in a process that ends, so that pages are at hand."""
    code = f"from rig.memory import touch; touch({size_bytes})"
    subprocess.run([sys.executable, "-c", code], check=True)


def touch(size_bytes: int) -> None:
    """Have the kernel provide that much memory, and give it back."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, size_bytes, flags=flags).close()
