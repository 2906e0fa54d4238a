"""An attribute that is computed once, without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801 - a decorator, as `property` is
    """Compute an attribute when it is first read and keep it with the object.

    Up to Python 3.11 `functools.cached_property` has one lock for all objects of a class: a process that is
    forked while a thread computes inherits the held lock and waits forever. This one has no lock, so two
    threads that read at once may both compute: the function must return the same each time. (Python 3.12's
    has no lock either.)

    >>> class Circle:
    ...     @computed_once
    ...     def area(self) -> float:
    ...         return 3.14
    >>> Circle().area
    3.14
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = self.compute(instance)
        kept: T = instance.__dict__.setdefault(self.name, value)  # all threads get the first one
        return kept
