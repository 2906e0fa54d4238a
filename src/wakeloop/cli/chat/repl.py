"""The chat loop: read, run, print, repeat."""

import shlex
import signal
import sys
from dataclasses import dataclass
from threading import Event
from typing import TextIO

from wakeloop.cli.agent_spec import AgentSpec, refuse_non_utf8
from wakeloop.cli.chat.conversation import Conversation, build_chat_graph
from wakeloop.cli.chat.dot_commands import COMMANDS, Command, is_message, parse_entry, refuse_argument
from wakeloop.cli.chat.input import ChatInput, Names, PipeInput, TerminalInput, interrupt_prompt
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
from wakeloop.cli.final_state import MOST_ITEMS, exit_code, format_raise_hint
from wakeloop.cli.questions import Answering, find_questions, format_question_value
from wakeloop.cli.run_thread import (
    AUTO_CONTINUE_NOTE,
    exit_now,
    explain_at_rest,
    forget_unanswered,
    is_at_rest,
)
from wakeloop.cli.store import DatabaseFile, ThreadRecord, open_to_write
from wakeloop.cli.streams import at_a_terminal
from wakeloop.config.levels import config_folder, list_names
from wakeloop.display import formatting
from wakeloop.display.live_view import LiveView, supports_live_view
from wakeloop.display.screen import Kind, Line, PlainView, Screen
from wakeloop.display.terminal_output import clean_line
from wakeloop.text.characters import pluralize
from wakeloop.thread.outside import release_thread
from wakeloop.thread.steering import find_next_input
from wakeloop.thread.thread_status import is_unfinished, read_session

DROPPED = "Discarded what you typed meanwhile"


def run_chat(
    thread: str,
    known: ThreadRecord | None,
    spec: AgentSpec,
    database: DatabaseFile,
    *,
    ask: bool,
    wait: float = 0.0,
) -> int:
    """Chat with a thread until the input ends, and return the exit code."""
    with ExternalTools() as outside:
        build_chat_graph(spec, outside, ask=ask, stop=Event())  # raises before anything is stored
        with open_to_write(database) as store:
            request = known.request if known else ""
            talk = Conversation(database, store, "", spec, request, ask, outside, wait=wait)
            with talk.held_thread, exit_on_sigterm(interrupt_prompt):
                talk.hold(thread)
                code = Repl(talk, choose_input(talk), new_thread="" if known else thread).run_to_exit()
                if talk.abandoned:
                    outside.close()
                    exit_now(code)  # a request or a tool is still running in this process
                return code


def choose_input(talk: Conversation) -> ChatInput:
    """Return terminal input if both ends are terminals, else a pipe."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PipeInput()
    folder = config_folder()

    def there() -> Names:
        return {
            "roles": list_names(folder, "roles"),
            "agents": list_names(folder, "agents"),
            "threads": [known.id for known in talk.store.threads()],
            "items": [str(todo["id"]) for todo in talk.snapshot.values.get("todos") or ()],
        }

    return TerminalInput(there)


def make_printer(out: TextIO) -> View:
    """Return the view that prints lines between runs."""
    return LiveView(Screen(), out) if supports_live_view(out) else PlainView(Screen(), out)


@dataclass
class Repl:
    """The loop of one chat.

    `worst_code` is the exit code for a script in which something failed. `new_thread` is the id of a thread
    that this chat creates, else "".
    """

    talk: Conversation
    source: ChatInput
    worst_code: int = SETTLED
    new_thread: str = ""
    failed: bool = False
    answering: tuple[tuple[str, str], Answering] | None = None  # by thread and question

    def __post_init__(self) -> None:
        self.out, self.err = make_printer(sys.stdout), make_printer(sys.stderr)

    def say(self, kind: Kind, text: str) -> None:
        """Print a line."""
        self.out.say(Line(kind, text))

    def run_to_exit(self) -> int:
        """Handle entries until the last one, a signal, or Ctrl-C in a script; return the exit code."""
        try:
            return self.read_entries()
        except SystemExit:
            return TERMINATED
        except KeyboardInterrupt:
            return INTERRUPTED

    def read_entries(self) -> int:
        """Handle entries until the last one; return the exit code."""
        which = f"Thread {self.talk.thread} ({clean_line(self.talk.spec.model_title)}); "
        self.say("note", ("" if at_a_terminal() else which) + ".help lists the commands.")
        for note in unused_mcp_notes(self.talk.spec):
            self.say("note", note)
        if self.talk.spec.switched_on:
            self.say("note", AUTO_CONTINUE_NOTE)
        self.report_state()
        while True:
            snapshot = self.talk.snapshot
            waits = bool(find_questions(snapshot))
            toolbar = formatting.format_list_line(snapshot.values.get("todos") or ())
            try:
                prompt = "answer> " if waits else f"{self.talk.spec.agent or self.talk.spec.role}> "
                typed = self.source.read_entry(prompt, answer=waits, toolbar=toolbar)
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
            except Exception as error:  # noqa: BLE001 - users get a sentence, whatever it is
                self.report_error(error)

    def report_error(self, error: Exception) -> None:
        """Print what went wrong, in a sentence."""
        self.err.say(Line("error", format_error(error)))
        if is_model_error(error):
            self.err.say(Line("way", f"To diagnose it: {self.talk.spec.doctor_command}"))
        self.worst_code, self.failed = max(self.worst_code, error_exit_code(error)), True

    def finish(self) -> int:
        """Say how to return; the exit code is 0 for a person, for a script the worst of what happened.

        A new thread without a successful run is forgotten.
        """
        talk, snapshot = self.talk, self.talk.snapshot
        forgets = self.failed and talk.thread == self.new_thread
        gone = forgets and forget_unanswered(talk.thread, talk.graph, talk.store)
        if self.source.is_person and snapshot.values and not gone:
            where = ["--db", str(talk.database.path)] if talk.database.named else []
            command = shlex.join(["wakeloop", "chat", "--thread", talk.thread, *where])
            self.say("way", f"To continue: {command}")
        if self.source.is_person:
            return SETTLED
        rested = exit_code(read_session(snapshot)) if snapshot.values else SETTLED
        return self.worst_code if self.worst_code != SETTLED else rested

    def handle_entry(self, typed: str) -> bool:
        """Handle an entry; return True if it is the last one."""
        if not typed.strip():
            return False
        refuse_non_utf8(typed)
        entry = parse_entry(typed)
        if isinstance(entry, str):
            answering = self.find_answering() if self.source.is_person else None
            meant = entry if answering is None else answering.take(entry, self.err.say)
            if meant is None:  # the question is repeated, or its next part is asked
                self.report_state()
            else:
                self.run_thread(meant)
            return False
        if entry.name in ("exit", "resume", "go"):
            refuse_argument(entry)
        if entry.name in ("resume", "go"):
            release_thread(self.talk.graph, self.talk.config)
            self.resume()
        elif entry.name != "exit":
            self.run_dot_command(entry)
        return entry.name == "exit"

    def find_answering(self) -> Answering | None:
        """Return the answers so far to the question that waits; None without one."""
        waits = find_questions(self.talk.snapshot)
        if not waits:
            return None
        key = (self.talk.thread, waits[0].id)
        if self.answering is None or self.answering[0] != key:
            self.answering = (key, Answering(waits[0].value))
        return self.answering[1]

    def run_dot_command(self, command: Command) -> None:
        """Run a dot command; if it switched threads, report the state of the new one."""
        thread, (*_, does) = self.talk.thread, COMMANDS[command.name]
        for text in does(self.talk, command) if does else ():
            self.say("item", text)
        if self.talk.thread != thread:
            self.report_state()

    def resume(self) -> None:
        """Repeat the question, finish the run, or continue the list."""
        snapshot = self.talk.snapshot
        if find_questions(snapshot):
            self.report_state()
        elif not snapshot.values or is_at_rest(snapshot):
            raise usage_error(explain_at_rest(read_session(snapshot)))
        else:
            self.run_thread(None)

    def run_thread(self, message: str | None) -> None:
        """Run the thread and report how it ended; Ctrl-C ends the run for good."""
        with self.source.capture_ahead(lambda typed: is_message(typed) and self.talk.steer(typed)):
            outcome, view = self.talk.run(message, self.source.typed_ahead)
        if outcome.stopped == signal.SIGTERM:
            self.say("note", f"To finish the run: wakeloop resume {self.talk.thread}")
            raise SystemExit(TERMINATED)
        if outcome.stopped is not None:
            self.talk.stop()
        self.report_end(outcome, view)
        if outcome.stopped is not None:
            unread, typed = self.talk.discard_words(), self.source.discard_ahead()
            if unread or typed:
                self.say("note", f"{DROPPED}.")
        elif find_next_input(self.talk.graph, self.talk.snapshot):  # sent when the run had just ended
            self.run_thread(None)
        if outcome.stopped is not None and not self.source.is_person:
            raise KeyboardInterrupt

    def report_end(self, outcome: Outcome, view: View) -> None:
        """Report how a run ended and what it used, with the list if the live view showed it."""
        snapshot = self.talk.snapshot
        session, todos = read_session(snapshot), snapshot.values.get("todos") or []
        if isinstance(view, LiveView):
            for todo in todos[:MOST_ITEMS]:
                self.say("item", f"  {formatting.format_item(todo)}")
            if len(todos) > MOST_ITEMS:
                self.say("item", f"  … and {len(todos) - MOST_ITEMS} more: .todo")
        if outcome.stopped is not None:
            self.say("end", f"Stopped with {session['open']} open; your next message starts fresh.")
        elif not find_questions(snapshot) and (todos or session["reason"] not in ("settled", "answered")):
            self.say("end", formatting.format_ending(session))
        self.say("note", view.screen.summary)
        if wrong := formatting.format_trouble(session, todos):
            self.say("error", wrong)
        if way := format_raise_hint(session, self.talk.spec, self.talk.overrides, self.talk.thread, None):
            self.say("way", way)
        if find_questions(snapshot):
            self.report_state()

    def report_state(self) -> None:
        """Report the state of the thread: its question, its interrupted run, or its list."""
        snapshot = self.talk.snapshot
        if find_questions(snapshot):
            answering = self.find_answering()
            for line in format_question_value(answering.part if answering else None):
                self.out.say(line)
            if self.source.discard_ahead():
                self.say("note", f"{DROPPED}, because it came before the question.")
            if count := self.talk.store.count_waiting(self.talk.thread, snapshot.values):
                waits = f"{pluralize(count, 'message')} that you sent: read once you have answered."
                self.say("note", waits)
            self.say("note", "Type .stop to end the run without an answer.")
        elif is_unfinished(snapshot):
            self.say(
                "note",
                "The last run was interrupted. Type .resume to finish it, or a message to start fresh.",
            )
        elif todos := snapshot.values.get("todos"):
            self.say("item", f"list: {formatting.format_progress(todos)}")
