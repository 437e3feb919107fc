"""Glossary: the words of the field, each in a sentence or two."""

from topox_ui.learn.entries import entries
from topox_ui.shell.page import frame, size_switch

frame("Glossary")
size_switch()
entries()
