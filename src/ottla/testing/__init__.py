"""Tools for tests of your own programs: a broker inside the process, a pytest plugin.

    import ottla.testing

    def test_my_service():
        with ottla.testing.Broker() as broker:
            run_my_service(bootstrap=broker.bootstrap)

Or a whole cluster in virtual time, for code that uses `ottla.client` with asyncio:

    @ottla.testing.simulated(seed=7)
    async def test_my_service():
        async with ottla.testing.simulate(brokers=3) as cluster:
            await cluster.crash(1, power=True)
            await cluster.advance(days=8)

With pytest, the fixture `ottla_broker` starts a broker for each test that uses it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.operations.secure.login import ClientLogin
    from ottla.testing.broker import Broker
    from ottla.testing.simulation.cluster import SimulatedCluster, simulate, simulated
    from ottla.testing.simulation.virtual.loop import run_virtual

__all__ = ["Broker", "ClientLogin", "SimulatedCluster", "run_virtual", "simulate", "simulated"]

_HOMES = {
    "Broker": "ottla.testing.broker",
    "ClientLogin": "ottla.operations.secure.login",
    "SimulatedCluster": "ottla.testing.simulation.cluster",
    "run_virtual": "ottla.testing.simulation.virtual.loop",
    "simulate": "ottla.testing.simulation.cluster",
    "simulated": "ottla.testing.simulation.cluster",
}


def __getattr__(name: str) -> Any:
    # pytest imports this package in every run of every project that has Ottla installed. So the
    # package is light, and a name is imported on first use.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(name)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
