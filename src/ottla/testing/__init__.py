"""For tests of users' own programs: a broker inside the process, a pytest plugin.

    import ottla.testing

    def test_my_service():
        with ottla.testing.Broker() as broker:
            run_my_service(bootstrap=broker.bootstrap)

With pytest the fixture `ottla` gives the same, one broker for each test that asks for it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.broker import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> Any:
    # pytest imports this package in every run of every project that has Ottla installed;
    # only those who use the broker pay for importing it.
    if name == "Broker":
        from ottla.testing.broker import Broker  # noqa: PLC0415

        return Broker
    raise AttributeError(name)
