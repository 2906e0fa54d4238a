"""A request through an agent's own model node."""

from typing import Any

from wakeloop.loop.case import Costs
from wakeloop.loop.replies import note_format_reply
from wakeloop.model.finish_reasons import reply_problem
from wakeloop.model.reply import drop_calls
from wakeloop.model.reply_watcher import ReplyWatcher
from wakeloop.text.characters import shorten
from wakeloop.text.marks import make_mark, new_id
from wakeloop.thread.exchange import Exchange

JUDGED_LATER = Costs(round=0)  # a round is judged after the reply, when the hooks before it are known


class AgentExchange(Exchange):
    """A request through an agent's own model node, which reads an answer in a format itself."""

    def store_structured(self, result: Any, heard: ReplyWatcher) -> None:  # noqa: ARG002 - whole, or the agent has raised
        """Store the reply as the agent does; request it again if it holds no answer in the format."""
        reply, response = result["raw"], result["response"]
        refused = reply_problem(reply) == "refused"
        problem = None
        if response.structured_response is None and not refused:
            said = [str(m.content) for m in response.result if m is not reply]
            problem = shorten(" ".join(said) or "there was no result in it", 300)
            reply = reply if said else drop_calls(reply, self.request.fill_prompt("no_text"))
        self.ledger = note_format_reply(self.ledger, problem, self.settings, cut=False, refused=refused)
        marked = {**reply.additional_kwargs, **make_mark("format")}
        key = reply.id if reply.id and not self.has_message(reply.id) else new_id()
        self.stores_reply = True
        self.request.writes.append(reply.model_copy(update={"additional_kwargs": marked, "id": key}))
