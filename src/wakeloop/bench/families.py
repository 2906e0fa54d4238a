"""Every family of tasks, by its name."""

from collections.abc import Mapping

from wakeloop.bench import file_tasks, program_tasks, question_tasks, table_tasks, trap_tasks
from wakeloop.bench.task import Family

_MODULES = (file_tasks, table_tasks, program_tasks, trap_tasks, question_tasks)

FAMILIES: Mapping[str, Family] = {
    found.name: found for room in _MODULES for found in vars(room).values() if isinstance(found, Family)
}
