"""The tour, and the glossary as a page."""
