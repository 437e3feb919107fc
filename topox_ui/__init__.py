"""Streamlit glue between pages and the core: frame, scenario, solve panel, cached calls."""
