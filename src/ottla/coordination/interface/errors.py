"""The errors of the store: refusals, and unknown outcomes."""

from ottla.base.errors import ErrorCode, OttlaError


class StoreError(OttlaError):
    """An operation that the store refused or could not finish."""

    def __init__(self, path: str, message: str, code: ErrorCode) -> None:
        super().__init__(code, message)
        self.path = path


class NoNode(StoreError):
    """The node, or the parent of a node to create, does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"the store holds no node {path}", ErrorCode.UNKNOWN_SERVER_ERROR)


class NodeExists(StoreError):
    """The node to create exists already."""

    def __init__(self, path: str) -> None:
        message = f"the store already holds {path}"
        super().__init__(path, message, ErrorCode.UNKNOWN_SERVER_ERROR)


class BadVersion(StoreError):
    """Another client changed the node meanwhile: read it again and decide again."""

    def __init__(self, path: str, expected: int, found: int | None) -> None:
        message = f"{path} is not at version {expected}"
        if found is not None:
            message = f"{path} is at version {found}, not {expected}"
        super().__init__(path, message, ErrorCode.INVALID_UPDATE_VERSION)


class NotEmpty(StoreError):
    """The node to delete has children."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"{path} has children", ErrorCode.UNKNOWN_SERVER_ERROR)


class SessionExpired(StoreError):
    """The session has ended; its ephemeral nodes are gone. Open another."""

    def __init__(self, session_id: int) -> None:
        message = f"session {session_id} with the store has ended"
        super().__init__("", message, ErrorCode.STALE_BROKER_EPOCH)


class StoreUnavailable(StoreError):
    """The store did not answer. A change may have been made."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.REQUEST_TIMED_OUT) -> None:
        super().__init__("", message, code)


class StoreDenied(StoreError):
    """The store denies access: the name or password is wrong or missing."""

    def __init__(self, message: str) -> None:
        super().__init__("", message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class StoreDamaged(StoreError):
    """The store contradicts itself or an earlier read. It must not be used."""

    def __init__(self, message: str) -> None:
        super().__init__("", message, ErrorCode.UNKNOWN_SERVER_ERROR)


class StoreRolledBack(StoreDamaged):
    """Changes that this broker has seen are gone: the store was replaced by an older copy."""
