"""Reads, runs, shows, and reads again."""

import shlex
import signal
import sys
from dataclasses import dataclass
from threading import Event
from typing import TextIO

from wakeloop.cli.agent import build_recipe_graph
from wakeloop.cli.budget_hints import format_set_hint
from wakeloop.cli.chat import lines
from wakeloop.cli.chat.completion import Names
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.dots import DOTS
from wakeloop.cli.chat.keyboard import Keyboard, Pipe, Terminal, interrupted
from wakeloop.cli.failures import (
    INTERRUPTED,
    SETTLED,
    TERMINATED,
    error_exit_code,
    format_error,
    is_model_error,
    usage_error,
)
from wakeloop.cli.finish_run import exit_now, forget_unanswered
from wakeloop.cli.outcome import MOST_ITEMS, exit_code
from wakeloop.cli.output_formats import at_a_terminal
from wakeloop.cli.outside import Outside, terminated, unasked
from wakeloop.cli.play import SWITCHED_ON, at_rest, nothing_left
from wakeloop.cli.questions import format_question, resolve_answer
from wakeloop.cli.recipe import Recipe, refuse_halves
from wakeloop.cli.run import Outcome, View
from wakeloop.cli.store import Known, Place, writing
from wakeloop.config.levels import config_folder, list_names
from wakeloop.display.clean import one_line
from wakeloop.display.live import Live, fits
from wakeloop.display.plain import Plain
from wakeloop.display.screen import Kind, Line, Screen
from wakeloop.display.words import ending, item, list_of, progress, trouble
from wakeloop.thread.standing import counted, unfinished

DROPPED = "What you typed meanwhile is dropped"


def chat(thread: str, known: Known | None, recipe: Recipe, place: Place, *, ask: bool) -> int:
    """Talk with a thread until the input ends; returns the exit code."""
    with Outside() as outside:
        build_recipe_graph(recipe, outside, ask=ask, stop=Event())  # what cannot be built leaves no trace
        with writing(place) as store:
            talk = Conversation(place, store, "", recipe, known.request if known else "", ask, outside)
            with talk.held, terminated(interrupted):
                talk.hold(thread)
                code = Repl(talk, keyboard_for(talk), begun="" if known else thread).whole()
                if talk.left:
                    outside.close()
                    exit_now(code)  # a request or a tool is still at work in this process
                return code


def keyboard_for(talk: Conversation) -> Keyboard:
    """A terminal where a person sits at one, else plain lines."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Pipe()
    folder = config_folder()

    def there() -> Names:
        return Names(
            roles=list_names(folder, "roles"),
            agents=list_names(folder, "agents"),
            threads=[known.id for known in talk.store.threads()],
            ids=[str(todo["id"]) for todo in talk.snapshot.values.get("todos") or ()],
        )

    return Terminal(there)


def printer(out: TextIO) -> View:
    """Writes lines between the runs."""
    return Live(Screen(), out) if fits(out) else Plain(Screen(), out)


@dataclass
class Repl:
    """The loop over one conversation; `worst` is the exit code of what went wrong, for a script.

    `begun` is the thread that this conversation is the first of.
    """

    talk: Conversation
    keyboard: Keyboard
    worst: int = SETTLED
    begun: str = ""
    failed: bool = False

    def __post_init__(self) -> None:
        self.out, self.err = printer(sys.stdout), printer(sys.stderr)

    def say(self, kind: Kind, text: str) -> None:
        """Write a line."""
        self.out.say(Line(kind, text))

    def whole(self) -> int:
        """Take entries until the last, a signal, or Ctrl-C in a script; returns the exit code."""
        try:
            return self.loop()
        except SystemExit:
            return TERMINATED
        except KeyboardInterrupt:
            return INTERRUPTED

    def loop(self) -> int:
        """Take entries until the last."""
        which = f"Thread {self.talk.thread} ({one_line(self.talk.recipe.title)}); "
        self.say("note", ("" if at_a_terminal() else which) + ".help lists the commands.")
        for told in unasked(self.talk.recipe):
            self.say("note", told)
        if self.talk.recipe.switched_on:
            self.say("note", SWITCHED_ON)
        self.tell_standing()
        while True:
            snapshot = self.talk.snapshot
            waits, beside = bool(snapshot.interrupts), list_of(snapshot.values.get("todos") or ())
            try:
                typed = self.keyboard.entry(self.prompt(waits=waits), answer=waits, beside=beside)
            except EOFError:
                return self.left()
            try:
                if self.took(typed):
                    return self.left()
            except KeyboardInterrupt:
                if not self.keyboard.person:
                    raise
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
                self.told(error)

    def prompt(self, *, waits: bool) -> str:
        """What stands before the cursor."""
        recipe = self.talk.recipe
        return "answer> " if waits else f"{recipe.agent or recipe.role}> "

    def told(self, error: Exception) -> None:
        """Say what went wrong, in a sentence."""
        self.err.say(Line("error", format_error(error)))
        if is_model_error(error):
            self.err.say(Line("way", f"To look into it: {self.talk.recipe.doctor}"))
        self.worst, self.failed = max(self.worst, error_exit_code(error)), True

    def left(self) -> int:
        """Say how to come back, and return the exit code; a thread that was begun in vain is not kept."""
        talk = self.talk
        if (
            self.failed
            and talk.thread == self.begun
            and forget_unanswered(talk.thread, talk.graph, talk.store)
        ):
            return self.code()
        if self.keyboard.person and self.talk.snapshot.values:
            where = ["--db", str(self.talk.place.path)] if self.talk.place.named else []
            words = ["wakeloop", "chat", "--thread", self.talk.thread, *where]
            self.say("way", f"To go on: {shlex.join(words)}")
        return self.code()

    def code(self) -> int:
        """The exit code: a person's is 0; a script's tells of what was refused, failed, or is still open."""
        if self.keyboard.person:
            return SETTLED
        if self.worst != SETTLED:
            return self.worst
        snapshot = self.talk.snapshot
        return exit_code(counted(snapshot)) if snapshot.values else SETTLED

    # -- one entry -------------------------------------------------------------------------------------

    def took(self, typed: str) -> bool:
        """Take one entry; True where it is the last."""
        if not typed.strip():
            return False
        refuse_halves(typed)
        entry = lines.read(typed)
        if isinstance(entry, str):
            if (meant := self.meant(entry)) is None:
                self.tell_standing()
            else:
                self.run(meant)
            return False
        if entry.name in ("exit", "resume"):
            lines.nothing(entry)
        if entry.name == "resume":
            self.resume()
        elif entry.name != "exit":
            self.dotted(entry)
        return entry.name == "exit"

    def meant(self, typed: str) -> str | None:
        """The text, or what a person's editor makes of the plan that waits; None puts the question again."""
        waits = self.talk.snapshot.interrupts if self.keyboard.person else ()
        return resolve_answer(waits[0].value, typed, self.err.say) if waits else typed

    def dotted(self, command: lines.Command) -> None:
        """Take a dot command, and say how another thread stands that it went to."""
        thread = self.talk.thread
        for text in DOTS[command.name](self.talk, command):
            self.say("item", text)
        if self.talk.thread != thread:
            self.tell_standing()

    def resume(self) -> None:
        """Go on without a text: show the question again, finish a run, or take up what is open."""
        snapshot = self.talk.snapshot
        if snapshot.interrupts:
            self.tell_standing()
        elif not snapshot.values or at_rest(snapshot):
            raise usage_error(nothing_left(counted(snapshot)))
        else:
            self.run(None)

    def run(self, message: str | None) -> None:
        """Run the thread and say how it ended; Ctrl-C ends the run for good."""
        with self.keyboard.kept():
            outcome, view = self.talk.run(message, self.keyboard.ahead)
        if outcome.stopped == signal.SIGTERM:
            self.say("note", f"The run is kept for wakeloop resume {self.talk.thread}.")
            raise SystemExit(TERMINATED)
        if outcome.stopped is not None:
            self.talk.stop()
        self.tell_end(outcome, view)
        if outcome.stopped is not None and self.keyboard.forget():
            self.say("note", f"{DROPPED}.")
        if outcome.stopped is not None and not self.keyboard.person:
            raise KeyboardInterrupt

    # -- how the thread stands -------------------------------------------------------------------------

    def tell_end(self, outcome: Outcome, view: View) -> None:
        """Say how a run ended, with the list where it was drawn, and what it took."""
        snapshot = self.talk.snapshot
        session, todos = counted(snapshot), snapshot.values.get("todos") or []
        if isinstance(view, Live):
            for todo in todos[:MOST_ITEMS]:
                self.say("item", f"  {item(todo)}")
            if len(todos) > MOST_ITEMS:
                self.say("item", f"  … and {len(todos) - MOST_ITEMS} more: .todo")
        if outcome.stopped is not None:
            self.say("end", f"Stopped, {session['open']} open; your next text begins anew.")
        elif not snapshot.interrupts and (todos or session["reason"] != "settled"):
            self.say("end", ending(session))
        self.say("note", view.screen.summary)
        if wrong := trouble(session, todos):
            self.say("error", wrong)
        if way := format_set_hint(session, self.talk.recipe, snapshot.values.get("todo_settings") or {}):
            self.say("way", way)
        if snapshot.interrupts:
            self.tell_standing()

    def tell_standing(self) -> None:
        """Say how a thread stands that is taken up: its list, what it waits for, what was broken off."""
        snapshot = self.talk.snapshot
        if snapshot.interrupts:
            for line in format_question(snapshot.interrupts[0]):
                self.out.say(line)
            if self.keyboard.forget():
                self.say("note", f"{DROPPED}: it was typed before the question.")
            self.say("note", ".stop leaves the question unanswered and ends the run.")
        elif unfinished(snapshot):
            self.say("note", "Its last run was broken off: .resume finishes it, a text begins anew.")
        elif todos := snapshot.values.get("todos"):
            self.say("item", f"list: {progress(todos)}")
