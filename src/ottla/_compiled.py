"""Lists the modules that run compiled, and keeps stale extensions from shadowing their sources.

Some modules of Ottla are compiled by mypyc if there is a C compiler. Otherwise the same source runs
as plain Python. The build writes `_compiled.json` beside this file, with the SHA-256 of each
compiled source. Extensions of Ottla are imported only if *all* of these sources are unchanged.
Extensions call each other without the import system, so one stale module makes all of them stale.
`OTTLA_PURE=1` asks for plain Python.

Runs before anything else of Ottla, in every process, so it imports late what is rarely needed.
"""

from __future__ import annotations

import os
import sys

# As the standard library's `random` does: hashlib would load OpenSSL, twice the time of all this.
# A failed import would cost as much, so the version decides.
try:
    if sys.version_info >= (3, 12):
        from _sha2 import sha256
    else:
        from _sha256 import sha256  # type: ignore[import-not-found]  # typeshed has no stub
except ImportError:
    from hashlib import sha256

# Not imported from `typing`, because that takes time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_PACKAGE = "ottla."
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_COMPILED_PACKAGES = ("record", "storage.index", "storage.segment")
MANIFEST = "_compiled.json"


class ExtensionGuard:
    """A meta-path finder that loads an Ottla module's source although it has an extension.

    `distrust` is the reason why extensions are not used. An extension without a source is treated
    as not installed. All other modules are left to the other finders.
    """

    def __init__(self, distrust: str) -> None:
        self.distrust = distrust

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PACKAGE):
            return None
        from importlib import machinery  # noqa: PLC0415 - only where extensions are passed over

        spec = machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        if not isinstance(spec.loader, machinery.ExtensionFileLoader):
            return None
        name = fullname.rpartition(".")[2]
        source = os.path.join(os.path.dirname(spec.origin), name + ".py")
        if not os.path.exists(source):
            raise ModuleNotFoundError(f"{fullname} is passed over: {self.distrust}", name=fullname)
        loader = machinery.SourceFileLoader(fullname, source)
        plain = machinery.ModuleSpec(fullname, loader, origin=source)
        plain.has_location = True
        return plain


def install() -> None:
    """Use sources instead of extensions if any extension is stale; then also warn.

    Costs about a millisecond. A second call does nothing.
    """
    if any(isinstance(finder, ExtensionGuard) for finder in sys.meta_path):
        return
    distrust = _reason_to_distrust()
    if not distrust:
        return
    sys.meta_path.insert(0, ExtensionGuard(distrust))
    if not _is_plain_asked() and _extensions():
        import warnings  # noqa: PLC0415 - only where there is something to say

        warnings.warn(
            f"{distrust}; the plain form of Ottla's codec runs, ten times slower "
            "(build it again: python setup.py build_ext --inplace)",
            RuntimeWarning,
            stacklevel=2,
        )


def status() -> dict[str, bool]:
    """Return, for each imported module that may be compiled, whether it runs compiled.

    Empty if no module was compiled.
    """
    found: dict[str, bool] = {}
    for name in sorted(_attested().keys() | _extensions()):
        module = sys.modules.get(name)
        if module is not None:
            found[name] = not str(module.__file__).endswith(".py")
    return found


def reason() -> str:
    """Return why extensions are not used; empty if they are used."""
    for finder in sys.meta_path:
        if isinstance(finder, ExtensionGuard):
            return finder.distrust
    return ""


def _is_plain_asked() -> bool:
    return os.environ.get("OTTLA_PURE", "") not in ("", "0")


def _reason_to_distrust() -> str:
    """Return why extensions must not be used, such as a changed source; empty if they may be."""
    if _is_plain_asked():
        return "OTTLA_PURE is set"
    attested = _attested()
    if not attested:
        if not _extensions():
            return "Ottla was installed without a C compiler, or without mypyc"
        return "nothing says what extensions were compiled from"
    for name, digest in attested.items():
        source = os.path.join(_FOLDER, *name.split(".")[1:]) + ".py"
        if _digest(source) != digest:
            return f"{name} was changed since it was compiled"
    unattested = _extensions() - attested.keys()
    if unattested:
        return f"{min(unattested)} has an extension that the last build did not make"
    return ""


def _attested() -> dict[str, str]:
    """Read the manifest: a flat JSON object of strings, module name to SHA-256 of its source."""
    try:
        with open(os.path.join(_FOLDER, MANIFEST), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return {}
    # The json module takes longer to import than all else here; the build writes no escapes.
    strings = text.split('"')[1::2]
    return dict(zip(strings[::2], strings[1::2], strict=False))


def _digest(path: str) -> str:
    """Return the SHA-256 of a file in hexadecimal; empty if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            digest: str = sha256(file.read()).hexdigest()
    except OSError:
        return ""
    return digest


def _extensions() -> set[str]:
    """Return the names of the modules that have an extension."""
    found: set[str] = set()
    for package in _COMPILED_PACKAGES:
        try:
            names = os.listdir(os.path.join(_FOLDER, *package.split(".")))
        except OSError:
            continue
        found.update(
            f"{_PACKAGE}{package}.{name.partition('.')[0]}"
            for name in names
            if name.endswith((".so", ".pyd"))
        )
    return found
