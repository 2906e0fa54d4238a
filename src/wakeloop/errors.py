"""The exceptions that wakeloop raises."""

from typing import Self

# Part of several messages. The command line replaces it, since its users have no input to pass.
RESUME_HINT = "run the thread again with the input None"


class WakeloopError(Exception):
    """Base class of all errors that wakeloop raises itself.

    The message says in full sentences what is wrong and how to fix it.

    Example:
        >>> from wakeloop import preset
        >>> try:
        ...     preset("lokki")
        ... except WakeloopError as error:
        ...     print(type(error).__name__)
        SettingsError
    """


class ArgumentError(WakeloopError, TypeError):
    """A public function got an argument or value that it does not accept; the message names the right one."""


class SettingsError(WakeloopError):
    """A setting is unknown, has a value that is not allowed, or cannot be changed in this place."""


class ToolNameError(WakeloopError):
    """Two tools have the same name, or a tool has the name of a todo tool."""


class ToolError(WakeloopError):
    """A tool cannot be used in this graph or in this way (`return_direct`, async only)."""


# Some are a ValueError, too: a LangGraph server shows their sentence, and of other classes only the name.
class ModelSetupError(WakeloopError, ValueError):
    """The model cannot be created, cannot call tools, or its package is not installed."""


class ReplyError(WakeloopError):
    """The model's reply could not be read. Nothing of it was stored, and the thread can be resumed."""


class InputError(WakeloopError, ValueError):
    """The input of a run was refused before the first request; the thread is unchanged."""


class EditError(WakeloopError):
    """A manual edit of the list was refused; nothing was changed."""


class SessionError(WakeloopError):
    """A session cannot be reached, or a host cannot do what it was asked to do."""


class BenchError(WakeloopError):
    """A study, a task or a journal of the bench cannot be used."""


class ConcurrentRunError(WakeloopError):
    """Another run or a manual edit wrote to the thread during a run.

    Raised at the end of the run, and that end is not stored: its work is in the history up to the checkpoint
    `own`. `other` is a checkpoint that the run did not write, `thread_id` the thread.
    """

    def __init__(self, thread_id: str, own: str, other: str) -> None:
        super().__init__(thread_id, own, other)
        self.thread_id, self.own, self.other = thread_id, own, other

    def __str__(self) -> str:
        return (
            f"Two runs wrote to the thread {self.thread_id!r} at the same time: this one, up to checkpoint"
            f" {self.own}, and another run or a manual edit, which wrote checkpoint {self.other}; neither"
            " contains the other's work. Let only one run use a thread at a time, with a lock around each"
            " run. To continue either side, invoke the graph with None and that side's checkpoint_id."
        )


class DamagedError(WakeloopError):
    """The stored data of a thread is not what a run of the graph writes. No step was run with it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"The stored data of this thread is damaged: {what}. Use an older checkpoint or a new thread."
        )


class UserCodeError(WakeloopError):
    """Your own code raised an exception, which is the cause of this one; nothing is stored of the step.

    Fix the code, then run the thread again with the input None.
    """

    function = "code"  # the argument that it was given as

    def __init__(self, sentence: str | None = None) -> None:
        asynchronous = f"This agent's {self.function} is asynchronous. Run it with ainvoke or astream."
        super().__init__(asynchronous if sentence is None else sentence)

    @classmethod
    def from_error(cls, name: str, text: str) -> Self:
        """Return the error for a function, named as its argument is, and what it raised."""
        return cls(f"{name} raised {text.rstrip('.')}. Fix it, then {RESUME_HINT}.")


class VerifyError(UserCodeError):
    """`verify` raised an exception, returned neither None nor a string, or is async in a synchronous run."""

    function = "verify"


class GoalError(UserCodeError):
    """`done_when` raised an exception, returned no verdict, or is async in a synchronous run."""

    function = "done_when"


class HookError(UserCodeError):
    """`pre_model_hook` raised an exception, or is async in a synchronous run."""

    function = "pre_model_hook"


class DialectError(UserCodeError):
    """A method of your own dialect raised an exception."""
