"""Runs beside a page: one owner a session, one panel."""
