"""Every family of tasks, by its name."""

from collections.abc import Mapping

from wakeloop.bench import file_tasks, trap_tasks
from wakeloop.bench.task import Family

FAMILIES: Mapping[str, Family] = {
    found.name: found
    for found in (*vars(file_tasks).values(), *vars(trap_tasks).values())
    if isinstance(found, Family)
}
