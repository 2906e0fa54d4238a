"""Every family of tasks, by its name."""

from collections.abc import Mapping

from wakeloop.bench import on_files, on_programs, on_questions, on_tables, on_traps
from wakeloop.bench.task import Family

_ROOMS = (on_files, on_tables, on_programs, on_traps, on_questions)

FAMILIES: Mapping[str, Family] = {
    found.name: found for room in _ROOMS for found in vars(room).values() if isinstance(found, Family)
}
