"""The rules of circuits: ports, networks that are given, and circuits that stay."""
