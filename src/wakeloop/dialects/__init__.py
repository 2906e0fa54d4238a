"""The registered dialects, by name."""

from wakeloop.dialects.base import Dialect
from wakeloop.dialects.checklist import Checklist
from wakeloop.dialects.loki import Loki
from wakeloop.dialects.parley import Parley
from wakeloop.dialects.write_todos import WriteTodos
from wakeloop.errors import ArgumentError, SettingsError
from wakeloop.text.wording import describe_type, suggest

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (Parley(), Loki(), Checklist(), WriteTodos())
}


def register_dialect(dialect: Dialect) -> None:
    """Register a dialect by its name; one that has the same name is replaced.

    Example:
        >>> from wakeloop.dialects.parley import Parley
        >>> register_dialect(Parley())
    """
    if not isinstance(dialect, Dialect):
        raise ArgumentError(f"`dialect` must be an instance of Dialect, got {describe_type(dialect)}.")
    DIALECTS[dialect.name] = dialect


def get_dialect(name: str) -> Dialect:
    """Return a registered dialect. Raises `SettingsError` for an unknown name.

    Example:
        >>> get_dialect("checklist").tool_names
        frozenset({'todo'})
    """
    if name not in DIALECTS:
        raise SettingsError(f"Unknown dialect {name!r}. {suggest(name, DIALECTS)}")
    return DIALECTS[name]


def find_write_names() -> frozenset[str]:
    """Return the names of the tools that write a list, in all dialects.

    Example:
        >>> "todo_update" in find_write_names()
        True
    """
    return frozenset[str]().union(*(dialect.writes for dialect in DIALECTS.values()))


def find_read_names() -> frozenset[str]:
    """Return the names of the tools that only read a list, in all dialects.

    Example:
        >>> sorted(find_read_names())
        ['todo__list', 'todo_list']
    """
    names = frozenset[str]().union(*(dialect.tool_names for dialect in DIALECTS.values()))
    return names - find_write_names()
