"""Sessions on DBOS, over SQLite or Postgres."""
