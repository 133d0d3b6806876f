"""The limit of open files of this process."""

import subprocess
import sys

_RAISES = """
import resource
from ottla.base.system import descriptors_max, raise_descriptors_max
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
assert descriptors_max() == 100
raise_descriptors_max()
assert descriptors_max() == 200
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (200, 200)
"""


def test_a_broker_may_open_what_its_administrator_allows() -> None:
    """Shells start programs with the soft limit, of 1,024 files on most systems."""
    subprocess.run([sys.executable, "-c", _RAISES], check=True)
