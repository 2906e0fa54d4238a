"""Imports the names of a package when they are first used."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """Return a package's `__getattr__` and `__dir__` (PEP 562); `modules` lists the names of each module.

    No module may have the name of something in it: importing it would replace that name in the package.
    """
    module_of: dict[str, str] = {}
    for module, names in modules.items():
        module_of |= dict.fromkeys(names, module)

    def get_attribute(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return get_attribute, lambda: sorted(module_of)
