"""Reads, runs, shows, and reads again."""

import shlex
import signal
import sys
from dataclasses import dataclass
from threading import Event
from typing import TextIO

from wakeloop.cli.agent import build_agent_graph
from wakeloop.cli.agent_spec import AgentSpec, refuse_non_utf8
from wakeloop.cli.budget_hints import format_set_hint
from wakeloop.cli.chat import parsing
from wakeloop.cli.chat.completion import Names
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.dot_commands import DOT_COMMANDS
from wakeloop.cli.chat.input import ChatInput, PipeInput, TerminalInput, interrupt_prompt
from wakeloop.cli.execution import Outcome, View
from wakeloop.cli.external_tools import ExternalTools, exit_on_sigterm, unused_mcp_notes
from wakeloop.cli.failures import (
    INTERRUPTED,
    SETTLED,
    TERMINATED,
    error_exit_code,
    format_error,
    is_model_error,
    usage_error,
)
from wakeloop.cli.final_state import MOST_ITEMS, exit_code
from wakeloop.cli.finish_run import exit_now, forget_unanswered
from wakeloop.cli.output_formats import at_a_terminal
from wakeloop.cli.questions import format_question, resolve_answer
from wakeloop.cli.run_job import AUTO_CONTINUE_NOTE, explain_at_rest, is_at_rest
from wakeloop.cli.store import DatabaseFile, ThreadRecord, open_to_write
from wakeloop.config.levels import config_folder, list_names
from wakeloop.display.formatting import (
    format_ending,
    format_item,
    format_list_line,
    format_progress,
    format_trouble,
)
from wakeloop.display.live_view import LiveView, supports_live_view
from wakeloop.display.plain_view import PlainView
from wakeloop.display.screen import Kind, Line, Screen
from wakeloop.display.terminal_text import clean_line
from wakeloop.thread.thread_status import is_unfinished, read_session

DROPPED = "What you typed meanwhile is dropped"


def run_chat(
    thread: str, known: ThreadRecord | None, spec: AgentSpec, database: DatabaseFile, *, ask: bool
) -> int:
    """Talk with a thread until the input ends; returns the exit code."""
    with ExternalTools() as outside:
        build_agent_graph(spec, outside, ask=ask, stop=Event())  # what cannot be built leaves no trace
        with open_to_write(database) as store:
            talk = Conversation(database, store, "", spec, known.request if known else "", ask, outside)
            with talk.held_thread, exit_on_sigterm(interrupt_prompt):
                talk.hold(thread)
                code = Repl(talk, choose_input(talk), new_thread="" if known else thread).run_to_exit()
                if talk.abandoned:
                    outside.close()
                    exit_now(code)  # a request or a tool is still at work in this process
                return code


def choose_input(talk: Conversation) -> ChatInput:
    """A terminal where a person sits at one, else plain lines."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PipeInput()
    folder = config_folder()

    def there() -> Names:
        return Names(
            roles=list_names(folder, "roles"),
            agents=list_names(folder, "agents"),
            threads=[known.id for known in talk.store.threads()],
            ids=[str(todo["id"]) for todo in talk.snapshot.values.get("todos") or ()],
        )

    return TerminalInput(there)


def make_printer(out: TextIO) -> View:
    """Writes lines between the runs."""
    return LiveView(Screen(), out) if supports_live_view(out) else PlainView(Screen(), out)


@dataclass
class Repl:
    """The loop over one conversation; `worst` is the exit code of what went wrong, for a script.

    `begun` is the thread that this conversation is the first of.
    """

    talk: Conversation
    source: ChatInput
    worst_code: int = SETTLED
    new_thread: str = ""
    failed: bool = False

    def __post_init__(self) -> None:
        self.out, self.err = make_printer(sys.stdout), make_printer(sys.stderr)

    def say(self, kind: Kind, text: str) -> None:
        """Write a line."""
        self.out.say(Line(kind, text))

    def run_to_exit(self) -> int:
        """Take entries until the last, a signal, or Ctrl-C in a script; returns the exit code."""
        try:
            return self.read_entries()
        except SystemExit:
            return TERMINATED
        except KeyboardInterrupt:
            return INTERRUPTED

    def read_entries(self) -> int:
        """Take entries until the last."""
        which = f"Thread {self.talk.thread} ({clean_line(self.talk.spec.model_title)}); "
        self.say("note", ("" if at_a_terminal() else which) + ".help lists the commands.")
        for told in unused_mcp_notes(self.talk.spec):
            self.say("note", told)
        if self.talk.spec.switched_on:
            self.say("note", AUTO_CONTINUE_NOTE)
        self.report_state()
        while True:
            snapshot = self.talk.snapshot
            waits, beside = bool(snapshot.interrupts), format_list_line(snapshot.values.get("todos") or ())
            try:
                typed = self.source.read_entry(self.prompt(waits=waits), answer=waits, beside=beside)
            except EOFError:
                return self.finish()
            try:
                if self.handle_entry(typed):
                    return self.finish()
            except KeyboardInterrupt:
                if not self.source.is_person:
                    raise
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
                self.report_error(error)

    def prompt(self, *, waits: bool) -> str:
        """What stands before the cursor."""
        spec = self.talk.spec
        return "answer> " if waits else f"{spec.agent or spec.role}> "

    def report_error(self, error: Exception) -> None:
        """Say what went wrong, in a sentence."""
        self.err.say(Line("error", format_error(error)))
        if is_model_error(error):
            self.err.say(Line("way", f"To diagnose it: {self.talk.spec.doctor_command}"))
        self.worst_code, self.failed = max(self.worst_code, error_exit_code(error)), True

    def finish(self) -> int:
        """Say how to come back, and return the exit code; a thread that was begun in vain is not kept."""
        talk = self.talk
        if (
            self.failed
            and talk.thread == self.new_thread
            and forget_unanswered(talk.thread, talk.graph, talk.store)
        ):
            return self.final_exit_code()
        if self.source.is_person and self.talk.snapshot.values:
            where = ["--db", str(self.talk.database.path)] if self.talk.database.named else []
            words = ["wakeloop", "chat", "--thread", self.talk.thread, *where]
            self.say("way", f"To go on: {shlex.join(words)}")
        return self.final_exit_code()

    def final_exit_code(self) -> int:
        """The exit code: a person's is 0; a script's tells of what was refused, failed, or is still open."""
        if self.source.is_person:
            return SETTLED
        if self.worst_code != SETTLED:
            return self.worst_code
        snapshot = self.talk.snapshot
        return exit_code(read_session(snapshot)) if snapshot.values else SETTLED

    # -- one entry -------------------------------------------------------------------------------------

    def handle_entry(self, typed: str) -> bool:
        """Take one entry; True where it is the last."""
        if not typed.strip():
            return False
        refuse_non_utf8(typed)
        entry = parsing.parse_entry(typed)
        if isinstance(entry, str):
            if (meant := self.resolve_answer(entry)) is None:
                self.report_state()
            else:
                self.run_thread(meant)
            return False
        if entry.name in ("exit", "resume"):
            parsing.refuse_argument(entry)
        if entry.name == "resume":
            self.resume()
        elif entry.name != "exit":
            self.run_dot_command(entry)
        return entry.name == "exit"

    def resolve_answer(self, typed: str) -> str | None:
        """The text, or what a person's editor makes of the plan that waits; None puts the question again."""
        waits = self.talk.snapshot.interrupts if self.source.is_person else ()
        return resolve_answer(waits[0].value, typed, self.err.say) if waits else typed

    def run_dot_command(self, command: parsing.Command) -> None:
        """Take a dot command, and say how another thread stands that it went to."""
        thread = self.talk.thread
        for text in DOT_COMMANDS[command.name](self.talk, command):
            self.say("item", text)
        if self.talk.thread != thread:
            self.report_state()

    def resume(self) -> None:
        """Go on without a text: show the question again, finish a run, or take up what is open."""
        snapshot = self.talk.snapshot
        if snapshot.interrupts:
            self.report_state()
        elif not snapshot.values or is_at_rest(snapshot):
            raise usage_error(explain_at_rest(read_session(snapshot)))
        else:
            self.run_thread(None)

    def run_thread(self, message: str | None) -> None:
        """Run the thread and say how it ended; Ctrl-C ends the run for good."""
        with self.source.capture_ahead():
            outcome, view = self.talk.run(message, self.source.typed_ahead)
        if outcome.stopped == signal.SIGTERM:
            self.say("note", f"The run is kept for wakeloop resume {self.talk.thread}.")
            raise SystemExit(TERMINATED)
        if outcome.stopped is not None:
            self.talk.stop()
        self.report_end(outcome, view)
        if outcome.stopped is not None and self.source.discard_ahead():
            self.say("note", f"{DROPPED}.")
        if outcome.stopped is not None and not self.source.is_person:
            raise KeyboardInterrupt

    # -- how the thread stands -------------------------------------------------------------------------

    def report_end(self, outcome: Outcome, view: View) -> None:
        """Say how a run ended, with the list where it was drawn, and what it took."""
        snapshot = self.talk.snapshot
        session, todos = read_session(snapshot), snapshot.values.get("todos") or []
        if isinstance(view, LiveView):
            for todo in todos[:MOST_ITEMS]:
                self.say("item", f"  {format_item(todo)}")
            if len(todos) > MOST_ITEMS:
                self.say("item", f"  … and {len(todos) - MOST_ITEMS} more: .todo")
        if outcome.stopped is not None:
            self.say("end", f"Stopped, {session['open']} open; your next text begins anew.")
        elif not snapshot.interrupts and (todos or session["reason"] != "settled"):
            self.say("end", format_ending(session))
        self.say("note", view.screen.summary)
        if wrong := format_trouble(session, todos):
            self.say("error", wrong)
        if way := format_set_hint(session, self.talk.spec, snapshot.values.get("todo_settings") or {}):
            self.say("way", way)
        if snapshot.interrupts:
            self.report_state()

    def report_state(self) -> None:
        """Say how a thread stands that is taken up: its list, what it waits for, what was broken off."""
        snapshot = self.talk.snapshot
        if snapshot.interrupts:
            for line in format_question(snapshot.interrupts[0]):
                self.out.say(line)
            if self.source.discard_ahead():
                self.say("note", f"{DROPPED}: it was typed before the question.")
            self.say("note", ".stop leaves the question unanswered and ends the run.")
        elif is_unfinished(snapshot):
            self.say("note", "Its last run was broken off: .resume finishes it, a text begins anew.")
        elif todos := snapshot.values.get("todos"):
            self.say("item", f"list: {format_progress(todos)}")
