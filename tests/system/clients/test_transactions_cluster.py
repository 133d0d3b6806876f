"""Records passed on in transactions while brokers die, and those who pass them on."""

from pathlib import Path

import pytest
from chaos.transactions.run import Plan, Run
from rig.clusters import Cluster


@pytest.mark.timeout(600)
def test_librdkafka_passes_records_on_exactly_once_while_brokers_and_copiers_die(
    whole: Cluster, tmp_path: Path
) -> None:
    """With leaders, coordinators, the controller; a reader who looks on is told the same (P13).

    That the library does not wait for ever for a group's coordinator that died is due to
    `ottla.broker.cluster.addresses`.
    """
    # A copier that is stuck is what this looks for least: it is replaced before all time is gone.
    plan = Plan("librdkafka", records=2_000, kills=2, seed=3, stuck_s=45, lost_s=240)
    outcome = Run(plan, whole, tmp_path, lambda told: None).run()
    assert outcome.verdict.is_good, outcome
    # The laws hold of something.
    assert outcome.verdict.records == 2_000
    assert outcome.verdict.hidden > 0
    assert (outcome.brokers_killed, outcome.copiers_killed) == (2, 2)
