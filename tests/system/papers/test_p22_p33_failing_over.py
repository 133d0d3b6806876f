"""Brokers that die: who leads instead, what is reported, and what the papers' nodes then say."""

import json
import re
from pathlib import Path

from rig.clusters import Cluster, Member
from rig.wire_client import WireClient

from tests.system.cli.ottla_command import Command

from .clusters import Tree, active_controller, brokers, create, stored_in, until
from .raw import batch, fetch, produce


def written(member: Member) -> str:
    """What a broker has printed."""
    return member.log.read_text(errors="replace")


def told(cluster: Cluster, pattern: str) -> list[str]:
    """All that any broker printed that matches."""
    lines = "\n".join(written(member) for member in cluster.members.values())
    return re.findall(pattern, lines)


def test_a_dead_broker_is_replaced_in_the_papers_nodes_and_all_brokers_know(
    three: Cluster, tree: Tree
) -> None:
    """P30: its ephemeral id goes; each affected state has leader, ISR and both epochs anew.

    A partition that the dead broker did not have stays as it was.
    """
    dead = next(number for number in three.members if number != active_controller(three))
    one, other = (number for number in three.members if number != dead)
    create(three, "p30", [[dead, one, other], [one, dead, other]])
    create(three, "p30-elsewhere", [[one, other]])
    elsewhere = tree.state("p30-elsewhere")
    assert tree.names("/brokers/ids") == ["1", "2", "3"]
    assert all(tree.is_ephemeral(f"/brokers/ids/{number}") for number in three.members)
    before = [tree.state("p30", index) for index in range(2)]
    assert [state["leader"] for state in before] == [dead, one]
    three.members[dead].kill()
    until(lambda: tree.names("/brokers/ids") == sorted(map(str, (one, other))), "its id to go")
    until(lambda: tree.state("p30", 0)["leader"] == one, "a new leader")
    until(lambda: dead not in tree.state("p30", 1)["isr"], "a smaller ISR")
    after = [tree.state("p30", index) for index in range(2)]
    assert [state["isr"] for state in after] == [[one, other], [one, other]]
    # The term of the leader that lives goes on.
    terms = [
        (old["leader_epoch"], new["leader_epoch"]) for old, new in zip(before, after, strict=True)
    ]
    assert terms == [(0, 1), (0, 0)]
    office = int(tree.text("/controller_epoch"))
    assert [state["controller_epoch"] for state in after] == [office, office]
    assert tree.state("p30-elsewhere") == elsewhere
    three.wait_until(
        lambda: three.agree(
            lambda seen: (
                sorted(seen.ports) == sorted((one, other))
                and [seen.topics["p30"][index].leader for index in range(2)] == [one, one]
            ),
            ["p30"],
        ),
        "every broker to know the new leaders",
    )
    with WireClient(three.members[one].port) as leader:
        assert produce(leader, "p30", batch(b"goes on")) == 0


def test_one_of_the_living_wins_the_office_with_a_higher_epoch(three: Cluster, tree: Tree) -> None:
    """P31: `/controller` is ephemeral; when its holder's session ends another one has it.

    A broker that is stopped in order ends its session at once.
    """
    first = active_controller(three)
    assert tree.json("/controller")["brokerid"] == first
    assert tree.is_ephemeral("/controller")
    epoch = int(tree.text("/controller_epoch"))
    three.members[first].stop()
    until(lambda: (tree.json("/controller") or {}).get("brokerid") not in (None, first), "another")
    second = active_controller(three)
    assert tree.json("/controller")["brokerid"] == second != first
    assert int(tree.text("/controller_epoch")) == epoch + 1
    assert won(three, epoch + 1) == [second]


def won(cluster: Cluster, epoch: int) -> list[int]:
    """Who says that it was elected controller of an epoch."""
    return [
        int(number)
        for number in told(cluster, rf"broker (\d) is the controller of epoch {epoch}\b")
    ]


def test_a_killed_controller_is_followed_by_one_other(tmp_path: Path) -> None:
    """P31: kill -9 on one machine, over SQLite: one of two wins, an epoch later, and elects."""
    store = f"sqlite://{tmp_path}/store.sqlite"
    with brokers(store) as cluster:
        first = active_controller(cluster)
        others = [number for number in cluster.members if number != first]
        create(cluster, "p31", [[first, *others]])
        assert json.loads(stored_in(store, "/controller"))["brokerid"] == first
        epoch = int(stored_in(store, "/controller_epoch"))
        cluster.members[first].kill()
        cluster.wait_until(
            lambda: cluster.agree(
                lambda seen: seen.controller in others and seen.topics["p31"][0].leader in others,
                ["p31"],
            ),
            "another controller, and what it decides",
        )
        assert int(stored_in(store, "/controller_epoch")) == epoch + 1
        assert won(cluster, epoch + 1) == [active_controller(cluster)]


def test_without_a_replica_in_sync_the_partition_is_offline_and_says_so(
    three: Cluster, tree: Tree
) -> None:
    """P22: `NoReplicaOnline` in the controller's log, in health and in `why`; no unclean leader."""
    first = active_controller(three)
    one, other = (number for number in three.members if number != first)
    create(three, "p22-safe", [[one, other]], {"min.insync.replicas": "1"})
    three.members[other].kill()
    until(lambda: tree.state("p22-safe")["isr"] == [one], "an ISR of one")
    three.members[one].kill()
    until(lambda: tree.state("p22-safe")["leader"] == -1, "no leader")
    # The other one has been out of sync: it is not asked.
    three.members[other].start()
    three.wait_until_formed()
    assert tree.state("p22-safe")["leader"] == -1
    until(lambda: told(three, r"p22-safe-0 is offline \(NoReplicaOnline\)"), "the report")
    ask = Command(three.members[first].address)
    health = ask.try_to("cluster", "health", "-o", "json")
    assert (health.code, health.json["healthy"]) == (1, False)
    offline = [row for row in health.json["findings"] if row["trouble"] == "offline"]
    # Other tests' topics of a single replica may be offline, too.
    names = [name for row in offline for name in row["partitions"]]
    assert "p22-safe-0" in names
    assert health.json["offline"] == len(names)
    story = ask("why", "leader", "p22-safe-0", "-o", "json").json
    assert story["leader"] is None
    assert story["decisions"][-1]["setting"] == "unclean.leader.election.enable"
    three.members[one].start()
    until(lambda: tree.state("p22-safe")["leader"] == one, "the last one in sync to lead")


def test_an_unclean_leader_is_alone_in_its_isr_and_the_loss_is_counted(
    three: Cluster, tree: Tree
) -> None:
    """P22: with `unclean.leader.election.enable` a survivor leads; the controller counts it.

    P20: the one that comes back drops by leader epoch what the survivor never had.
    """
    first = active_controller(three)
    one, other = (number for number in three.members if number != first)
    create(
        three,
        "p22-lossy",
        [[one, other]],
        {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    )
    with WireClient(three.members[one].port) as leader:
        assert produce(leader, "p22-lossy", batch(b"on both")) == 0
    three.members[other].kill()
    until(lambda: tree.state("p22-lossy")["isr"] == [one], "an ISR of one")
    with WireClient(three.members[one].port) as leader:
        assert produce(leader, "p22-lossy", batch(b"lost")) == 1
    three.members[one].kill()
    until(lambda: tree.state("p22-lossy")["leader"] == -1, "no leader")
    three.members[other].start()
    until(lambda: tree.state("p22-lossy")["leader"] == other, "the survivor to lead")
    assert tree.state("p22-lossy")["isr"] == [other]
    counted = rf"unclean election of {other} for p22-lossy-0: .*records may be lost \((\d+) in"
    assert int(until(lambda: told(three, counted), "the loss to be counted")[-1]) >= 1
    with WireClient(three.members[other].port) as leader:
        assert b"on both" in fetch(leader, "p22-lossy", 0)
        assert produce(leader, "p22-lossy", batch(b"in its place")) == 1
    # 000's second scenario: both ends and high watermarks are 2, and the records differ.
    three.members[one].start()
    three.wait_until_in_sync("p22-lossy")
    logs = [stored(three.members[number], "p22-lossy") for number in (one, other)]
    assert logs[0] == logs[1]
    assert b"in its place" in logs[0]
    assert b"lost" not in logs[0]


def stored(member: Member, topic: str) -> bytes:
    """The segments of partition 0 on a broker's disk."""
    folder = member.logs / f"{topic}-0"
    return b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))
