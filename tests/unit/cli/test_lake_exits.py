"""Which exit code an error of the lake has, for schedulers."""

import click
import pytest
from click.testing import CliRunner

from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli.lake.exits import LakeCommands
from ottla.lake.model.plan import RecordsLost
from ottla.lake.tables.table import CommitConflict


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RecordsLost(ErrorCode.OFFSET_OUT_OF_RANGE, "gone"), 3),
        (CommitConflict(ErrorCode.CONCURRENT_TRANSACTIONS, "another load was first"), 4),
        (OttlaError(ErrorCode.CORRUPT_MESSAGE, "damaged"), 1),
    ],
)
def test_refusals_and_lost_races_have_codes_of_their_own(error: OttlaError, code: int) -> None:
    """A race that is lost is no failure: the next load goes on."""

    @click.group(cls=LakeCommands)
    def lake() -> None:
        """A group whose verb fails."""

    @lake.command()
    def load() -> None:
        raise error

    assert CliRunner().invoke(lake, ["load"]).exit_code == code
