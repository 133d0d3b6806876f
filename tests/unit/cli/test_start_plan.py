"""The brokers that one command starts: their ids, ports and folders, and which are refused."""

from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.topics.internal_topics import automatic_topic
from ottla.cli.start.plan import Plan, require_no_brokers, require_single, several, unit, unit_of

LISTENERS = "PLAINTEXT://0.0.0.0:9092"


def made(folder: Path, *numbers: int) -> None:
    """Leave what brokers of an earlier start leave."""
    for number in numbers:
        (folder / f"broker-{number}").mkdir(parents=True)
        (folder / f"broker-{number}" / "meta.properties").touch()


def test_ids_ports_and_folders_of_a_unit_are_in_a_row(tmp_path: Path) -> None:
    """From those of the settings file, each listener's, in each log directory."""
    settings = BrokerSettings(
        {
            "node.id": "100",
            "listeners": "PLAINTEXT://0.0.0.0:9092,SSL://[::1]:9192",
            "advertised.listeners": "PLAINTEXT://broker.example:19092,SSL://broker.example:0",
            "log.dirs": f"{tmp_path}/one, {tmp_path}/two",
            "cores": "3",
        }
    )
    plan = unit_of(settings)
    assert list(plan.numbers) == [100, 101, 102]
    last = BrokerSettings(plan.settings(102))
    assert last.broker_id == 102
    assert last.texts("listeners") == ("PLAINTEXT://0.0.0.0:9094", "SSL://[::1]:9194")
    assert last.texts("advertised.listeners")[0] == "PLAINTEXT://broker.example:19094"
    assert last.texts("advertised.listeners")[1] == "SSL://broker.example:0"
    assert last.log_dirs == (f"{tmp_path}/one/broker-102", f"{tmp_path}/two/broker-102")
    assert last.text("coordination.connect") == f"sqlite://{tmp_path}/one/store.sqlite"
    assert last.keeps_apart
    plan.check()


def test_the_rack_of_a_unit_is_its_host_unless_it_is_set(tmp_path: Path) -> None:
    """All its brokers have the same one; brokers of --brokers have none."""
    plan = unit("2", tmp_path, LISTENERS, {})
    assert plan.settings(1)["broker.rack"] == plan.settings(2)["broker.rack"]
    assert unit("2", tmp_path, LISTENERS, {"broker.rack": "r"}).settings(2)["broker.rack"] == "r"
    assert "broker.rack" not in several(2, tmp_path, LISTENERS, {}).settings(2)


def test_a_unit_stops_without_its_others_only_if_they_are_elsewhere(tmp_path: Path) -> None:
    """With ZooKeeper, brokers of other machines can take over."""
    assert unit("2", tmp_path, LISTENERS, {}).ends_with_others
    elsewhere = {"coordination.connect": "zookeeper://zk:2181/x"}
    assert not unit("2", tmp_path, LISTENERS, elsewhere).ends_with_others


def test_ports_of_two_listeners_may_not_meet(tmp_path: Path) -> None:
    """It is refused before a broker is started."""
    plan = unit("2", tmp_path, "PLAINTEXT://:9092,SSL://:9093", {})
    with pytest.raises(OttlaError) as raised:
        plan.check()
    assert "port 9093 is taken twice, by SSL of broker 1 and PLAINTEXT of broker 2" in str(
        raised.value.message
    )
    unit("2", tmp_path, "PLAINTEXT://:0,SSL://:0", {}).check()


@pytest.mark.parametrize("cores", ["0", "-1", "two", "1.5"])
def test_cores_that_are_no_number_are_refused(tmp_path: Path, cores: str) -> None:
    """The sentence says what is taken."""
    with pytest.raises(OttlaError, match="auto for one per core"):
        unit(cores, tmp_path, LISTENERS, {})


def test_auto_is_a_number_of_the_machine(tmp_path: Path) -> None:
    """At least one; the brokers get the number itself."""
    plan = unit("auto", tmp_path, LISTENERS, {})
    assert plan.brokers >= 1
    assert plan.settings(1)["cores"] == str(plan.brokers)


@pytest.mark.parametrize("has_store", [True, False])
def test_no_single_broker_begins_among_the_folders_of_several(
    tmp_path: Path, has_store: bool
) -> None:
    """Also if their store is elsewhere, and the remedy is the command that made them."""
    made(tmp_path, 1, 2, 3)
    if has_store:
        (tmp_path / "store.sqlite").touch()
    for refuse in (require_single, require_no_brokers):
        with pytest.raises(OttlaError) as raised:
            refuse(tmp_path)
        said = raised.value.message
        assert f"`ottla start --cores 3 --data {tmp_path}`" in said
        assert ("and the coordination.connect of before" in said) is not has_store
    if has_store:
        with pytest.raises(OttlaError, match="belongs to a broker of the cluster"):
            require_single(tmp_path / "broker-2")
    else:
        # Anyone may call the folder of a single broker so.
        require_single(tmp_path / "broker-2")
    require_no_brokers(tmp_path / "broker-2")
    (tmp_path / "broker-2.properties").touch()
    with pytest.raises(OttlaError, match="ottla start --brokers 3"):
        require_single(tmp_path)


def test_a_topic_called_broker_is_no_broker(tmp_path: Path) -> None:
    """The folder of its partition has the same name."""
    (tmp_path / "broker-1").mkdir()
    require_single(tmp_path)


def test_several_begin_neither_in_the_folder_of_one_nor_in_a_members(tmp_path: Path) -> None:
    """The sentence for a unit says how to take over what is there."""
    made(tmp_path, 1)
    (tmp_path / "store.sqlite").touch()
    with pytest.raises(OttlaError, match="belongs to a broker of the cluster"):
        unit("2", tmp_path / "broker-1", LISTENERS, {}).check()
    single = tmp_path / "single"
    single.mkdir()
    (single / "meta.properties").touch()
    with pytest.raises(OttlaError) as raised:
        unit("2", single, LISTENERS, {}).check()
    assert f"ottla-store.sqlite to {single}/store.sqlite" in raised.value.message
    with pytest.raises(OttlaError, match="or start one with `ottla start`"):
        several(2, single, LISTENERS, {}).check()


def test_a_plan_knows_which_brokers_are_new_and_which_it_leaves_out(tmp_path: Path) -> None:
    """By the folders of an earlier start; in a new folder none is either."""
    assert (plan_of(tmp_path, 3).added(), plan_of(tmp_path, 3).others()) == ([], [])
    made(tmp_path, 1, 2)
    assert (plan_of(tmp_path, 3).added(), plan_of(tmp_path, 3).others()) == ([3], [])
    assert (plan_of(tmp_path, 1).added(), plan_of(tmp_path, 1).others()) == ([], [2])


def plan_of(folder: Path, brokers: int) -> Plan:
    return unit(str(brokers), folder, LISTENERS, {})


def test_internal_topics_take_what_the_machines_allow() -> None:
    """One replica on one machine of many brokers; a number in the file is waited for."""
    racks = {1: "a", 2: "a", 3: "a", 11: "b", 21: None}
    settings = BrokerSettings({"cores": "3"})
    alone = dict.fromkeys((1, 2, 3), "a")
    assert automatic_topic("__consumer_offsets", settings, alone).replication_factor == 1
    assert automatic_topic("__consumer_offsets", settings, racks).replication_factor == 3
    assert automatic_topic("__consumer_offsets", BrokerSettings(), alone).replication_factor == 3
    strict = BrokerSettings({"cores": "3", "offsets.topic.replication.factor": "3"})
    with pytest.raises(OttlaError, match=r"waits for machines: .* the cluster has 1 machine\."):
        automatic_topic("__consumer_offsets", strict, alone)
