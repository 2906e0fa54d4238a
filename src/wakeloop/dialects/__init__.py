"""The registered dialects, by name."""

from wakeloop.dialects.base import Dialect
from wakeloop.dialects.checklist import Checklist
from wakeloop.dialects.loki import Loki
from wakeloop.dialects.parley import Parley
from wakeloop.dialects.write_todos import WriteTodos
from wakeloop.errors import SettingsError

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (Parley(), Loki(), Checklist(), WriteTodos())
}


def register_dialect(dialect: Dialect) -> None:
    """Make a dialect available under its name; one of the same name is replaced."""
    DIALECTS[dialect.name] = dialect


def get_dialect(name: str) -> Dialect:
    """Return a registered dialect. Raises `SettingsError` for an unknown name."""
    if name not in DIALECTS:
        raise SettingsError(f"There is no dialect {name!r}; registered are {', '.join(DIALECTS)}.")
    return DIALECTS[name]
