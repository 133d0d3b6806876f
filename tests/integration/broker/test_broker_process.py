"""The broker as a process: starts, says why it cannot, stops in order, survives bad neighbours."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import pytest


def write_properties(folder, **settings):
    lines = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder / "logs")}
    lines.update({name.replace("_", "."): value for name, value in settings.items()})
    path = folder / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path


def start(path):
    return subprocess.Popen(
        [sys.executable, "-m", "ottla.broker.process.main", str(path)],
        stderr=subprocess.PIPE,
        text=True,
    )


def port_of(process):
    """Read the log until the broker serves."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "serves on port" in line:
            return int(line.split("serves on port")[1].split()[0])
    raise AssertionError(f"the broker did not start:\n{''.join(lines)}")


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    _, log = process.communicate(timeout=120)
    return log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(tmp_path, number):
    """Exit code 0, and the clean-shutdown marker in the data folder."""
    process = start(write_properties(tmp_path))
    port_of(process)
    assert not (tmp_path / "logs" / ".kafka_cleanshutdown").exists()
    stop(process, number)
    assert process.returncode == 0
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


def test_a_port_in_use_is_named_with_a_remedy(tmp_path):
    """No traceback: what is wrong and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start(write_properties(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}"))
        _, log = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in log
    assert "listeners" in log
    assert "Traceback" not in log


def test_a_data_folder_of_another_cluster_is_refused(tmp_path):
    """meta.properties says whose it is."""
    path = write_properties(tmp_path)
    process = start(path)
    port_of(process)
    stop(process)
    meta = tmp_path / "logs" / "meta.properties"
    lines = [
        "cluster.id=someoneElsesClusterAA" if line.startswith("cluster.id") else line
        for line in meta.read_text().splitlines()
    ]
    meta.write_text("\n".join(lines) + "\n")
    process = start(path)
    _, log = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "someoneElsesClusterAA" in log
    assert "Traceback" not in log


def test_a_data_folder_in_use_is_refused(tmp_path):
    """Two brokers on one folder would destroy it."""
    first = start(write_properties(tmp_path))
    port_of(first)
    second = start(tmp_path / "server.properties")
    _, log = second.communicate(timeout=120)
    stop(first)
    assert second.returncode == 1
    assert "in use" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num_partitons": "3"}, "num.partitions"),
        ({"num_partitions": "many"}, "num.partitions"),
        ({"listeners": "SSL://:9093"}, "ssl.keystore.location"),
        ({"log_dirs": "/dev/null/logs"}, "/dev/null/logs"),
        ({"listeners": "PLAINTEXT://no.such.host.invalid:9092"}, "no.such.host.invalid"),
    ],
)
def test_a_wrong_setting_is_explained(tmp_path, settings, said):
    """An unknown name brings up the nearest; nothing is started."""
    process = start(write_properties(tmp_path, **settings))
    _, log = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said in log
    assert "Traceback" not in log


def test_a_missing_file_is_named():
    """The usage, or the path that cannot be read."""
    process = start("/nowhere/server.properties")
    _, log = process.communicate(timeout=120)
    assert (process.returncode, "/nowhere/server.properties" in log) == (2, True)


@pytest.mark.parametrize(
    ("head", "said", "answered"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS handshake", b""),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP request", b"HTTP/1.1 400 "),
        (b"\xff\xff\xff\xff\x00\x12", "-1 bytes", b""),
        (b"\x7f\xff\xff\xff\x00\x12", "socket.request.max.bytes", b""),
    ],
)
def test_foreign_bytes_close_their_connection_and_are_named_in_the_log(
    tmp_path, head, said, answered
):
    """The log says what was seen and what to do; the broker serves on."""
    process = start(write_properties(tmp_path))
    port = port_of(process)
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(head)
        connection.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(13) == answered
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(bytes.fromhex("0000000a 0012 0000 00000007 ffff"))
        assert connection.recv(4096)[4:10] == bytes.fromhex("00000007 0000")
    assert said in stop(process)


def test_a_kill_leaves_a_folder_that_starts_again(tmp_path):
    """No clean-shutdown marker, and yet nothing stands in the way."""
    path = write_properties(tmp_path)
    process = start(path)
    port_of(process)
    stop(process, signal.SIGKILL)
    assert not (tmp_path / "logs" / ".kafka_cleanshutdown").exists()
    process = start(path)
    port_of(process)
    stop(process)
    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs Linux's /proc")
def test_memory_and_time_of_an_idle_broker_are_small(tmp_path):
    """An idle broker comes to rest: a second with less than a tenth of it on a processor."""
    process = start(write_properties(tmp_path))
    port_of(process)

    def cpu_s():
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def used_in_a_second_s():
        before_s = cpu_s()
        time.sleep(1)
        return cpu_s() - before_s

    assert any(used_in_a_second_s() < 0.1 for _ in range(30))
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        resident_kb = int(next(line for line in file if line.startswith("VmRSS")).split()[1])
    stop(process)
    assert resident_kb < 100_000
