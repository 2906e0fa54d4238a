"""Imports the names of a package when they are first used."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, Iterable[str]], extra: str = ""
) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """Return a package's `__getattr__` and `__dir__` (PEP 562); `modules` lists the names of each module.

    No module may have the name of something in it: importing it would replace that name in the package. If
    a name needs a package that is not installed, the error names the `extra` that installs it.
    """
    module_of: dict[str, str] = {}
    for module, names in modules.items():
        module_of |= dict.fromkeys(names, module)

    def get_attribute(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(module_of[name]), name)
        except ModuleNotFoundError as error:
            if not extra or str(error.name).startswith("wakeloop"):
                raise
            needs = f"{name} needs {error.name}: pip install 'wakeloop[{extra}]'."
            raise ModuleNotFoundError(needs, name=error.name) from None

    return get_attribute, lambda: sorted(module_of)
