"""CI tests the compiled form: a build that quietly fell back to the plain one fails there."""

import os

import ottla.record.codec
from ottla import _compiled


def test_the_form_that_runs_is_the_one_that_was_asked_for() -> None:
    """In CI, which has a C compiler, that is the compiled one; with OTTLA_PURE=1 the plain one."""
    compiled = _compiled.status().get(ottla.record.codec.__name__, False)
    if os.environ.get("OTTLA_PURE", "") not in ("", "0"):
        assert not compiled
    elif os.environ.get("CI") == "true":
        assert compiled, _compiled.reason()
    else:
        assert compiled is not bool(_compiled.reason())
