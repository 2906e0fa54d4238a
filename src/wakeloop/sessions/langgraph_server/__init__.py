"""Sessions on a LangGraph server, through its SDK."""

from wakeloop.sessions.langgraph_server.server_host import ServerHost

__all__ = ["ServerHost"]
