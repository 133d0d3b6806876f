"""What can be broken, by name, and what of it on which store and machine."""

from collections.abc import Callable

from chaos import clocks
from chaos.faults.fault import Fault
from chaos.faults.network import CutFromStore, OneWay, Split, SwizzleClog
from chaos.faults.processes import Kill, KillAll, KillController, KillTwo, Rolling, Stop, StopAll
from chaos.faults.security import Renew, Rotate
from chaos.faults.storage import BitFlip, ClockJump, FullDisk, PowerCut, PowerCutOfAll
from chaos.faults.store import StoreAway, StoreRestart

FAULTS: dict[str, Callable[[], Fault]] = {
    "kill": Kill,
    "kill-controller": KillController,
    "kill-two": KillTwo,
    "kill-all": KillAll,
    "stop": Stop,
    "stop-all": StopAll,
    "rolling": Rolling,
    "power": PowerCut,
    "power-all": PowerCutOfAll,
    "full-disk": FullDisk,
    "bit-flip": BitFlip,
    "clock": ClockJump,
    "partition": Split,
    "one-way": OneWay,
    "swizzle-clog": SwizzleClog,
    "store-away": StoreAway,
    "store-cut": CutFromStore,
    "store-restart": StoreRestart,
    "renew": Renew,
    "rotate": Rotate,
}

# What is made only where it is named.
BY_NAME_ONLY: tuple[str, ...] = ()
USUAL = tuple(name for name in FAULTS if name not in BY_NAME_ONLY)

_ZOOKEEPER_ONLY = ("store-cut", "store-restart")
_SECURE_ONLY = ("renew", "rotate")


def impossible(name: str, store: str, flush: str, *, is_secure: bool = False) -> str | None:
    """Why a fault cannot be made with this store on this machine; None if it can."""
    if name == "power-all" and flush == "os":
        return "power-all: with log.flush.policy=os no disk need have what was acknowledged"
    if name in _ZOOKEEPER_ONLY and store == "sqlite":
        return f"{name}: a SQLite file is on no host of its own"
    if name in _SECURE_ONLY and not is_secure:
        return f"{name}: needs --secure"
    if name == "clock" and clocks.compiler() is None:
        return "clock: jumping clocks need a C compiler"
    return None
