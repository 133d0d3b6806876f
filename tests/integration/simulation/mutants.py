"""What a mutant is: a rule taken away, which scripts and seeds have to notice."""

from collections.abc import Callable

import pytest

Mutate = Callable[[pytest.MonkeyPatch], None]
