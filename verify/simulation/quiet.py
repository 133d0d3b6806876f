"""What a run changes of its own process while it lasts: the log, and when memory is freed."""

import gc
import logging

from ottla.testing.simulation.machine.world import World


class FailureLog(logging.Handler):
    """Errors that a supervisor caught and logged with their trace are failures of the world."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and record.exc_info[1] is not None:
            self._world.fail(f"{record.getMessage()}: {record.exc_info[1]!r}")


class Quiet:
    """Keeps the brokers' log from the screen, and watches it for unexpected errors."""

    def __init__(self, world: World) -> None:
        self._handler = FailureLog(world)

    def __enter__(self) -> None:
        logger = logging.getLogger("ottla")
        self._before = (logger.level, logger.propagate)
        logger.addHandler(self._handler)
        logger.propagate = False
        logger.setLevel(logging.ERROR)
        self._collecting = gc.isenabled()
        gc.disable()
        gc.collect()
        gc.freeze()

    def __exit__(self, *_error: object) -> None:
        logger = logging.getLogger("ottla")
        logger.removeHandler(self._handler)
        logger.level, logger.propagate = self._before
        gc.unfreeze()
        if self._collecting:
            gc.enable()
