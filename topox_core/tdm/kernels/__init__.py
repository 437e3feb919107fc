"""Compiled loops of :mod:`topox_core.tdm`."""
