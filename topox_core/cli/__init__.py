"""The command line: everything the browser can do, for scripts."""
