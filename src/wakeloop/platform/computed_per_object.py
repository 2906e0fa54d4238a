"""A function whose results are kept with its arguments."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any, Generic, TypeVar
from weakref import ref

T = TypeVar("T")


class computed_per_object(Generic[T]):  # noqa: N801 - a decorator
    """Compute a function once for each object. The object is held weakly, so it is forgotten when it is gone.

    For objects that nobody changes, such as messages: a history is read in each step, and only what is new in
    it needs work.

    >>> class Message(str): ...
    >>> @computed_per_object
    ... def count(message: Message) -> int:
    ...     print("counts")
    ...     return len(message)
    >>> message = Message("Hi.")
    >>> count(message), count(message)
    counts
    (3, 3)
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__
        self.known: dict[int, tuple[ref[Any], T]] = {}

    def of_all(self, objects: Sequence[Any]) -> list[T]:
        """Return the results for several objects, at no call for each that is known."""
        kept: list[Any] = [*map(self.known.get, map(id, objects))]
        place = -1
        for _ in range(kept.count(None)):
            place = kept.index(None, place + 1)
            kept[place] = None, self(objects[place])
        return [*map(itemgetter(1), kept)]

    def __call__(self, given: Any) -> T:
        """Return the result for this object."""
        found = self.known.get(id(given))
        if found is not None:
            return found[1]
        value, key = self.compute(given), id(given)
        with suppress(TypeError):  # what cannot be held weakly is computed each time
            # the entry goes before the object's memory, and so its id, can be another's; `pop` is called with
            # the reference, too, which it takes for the value of an entry that is not there
            self.known[key] = ref(given, partial(self.known.pop, key)), value
        return value
