"""What we take from LangGraph and LangChain beyond its docs."""
