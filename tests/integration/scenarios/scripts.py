"""All scripts, each with the mutants that fail it."""

from collections.abc import Callable

from verify.walk.world import Build

from . import divergence, elections, idleness, membership

Script = Callable[[Build], None]
SCRIPTS: dict[Script, tuple[str, ...]] = {
    **divergence.SCRIPTS,
    **elections.SCRIPTS,
    **membership.SCRIPTS,
    **idleness.SCRIPTS,
}
