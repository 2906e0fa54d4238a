"""Sessions by command: serve, send, ps, cron and drain."""
