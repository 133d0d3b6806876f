"""On what the demo ran: versions, the machine, the command. Unknown parts are left out."""

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import ottla

_SHOWN = ("confluent-kafka", "pyspark", "pyarrow", "deltalake")


def described(command: str) -> list[tuple[str, str]]:
    """What to tell, each with its name."""
    told = [
        ("Ottla", ottla.__version__),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("Clients", ", ".join(filter(None, map(_package, _SHOWN)))),
        ("System", f"{_system()}, {platform.system()} {platform.release()}"),
        ("Processor", f"{_processor()}, {_cores()} cores for this process"),
        ("Memory", _memory()),
        ("Made", time.strftime("%Y-%m-%d %H:%M:%S %Z")),
        ("Command", command),
    ]
    return [(name, text) for name, text in told if text]


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def _system() -> str:
    if sys.platform != "linux":
        return platform.platform()
    for line in _lines("/etc/os-release"):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return ""


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal:"):
            return f"{int(line.split()[1]) / (1 << 20):.0f} GiB"
    return ""


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(errors="replace").splitlines() if file.exists() else []
