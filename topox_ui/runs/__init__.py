"""Runs beside a page: one owner a session, what all sessions share, the server's limits."""
