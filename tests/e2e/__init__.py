"""The whole workbench in a real browser: what only a browser, a server and child processes together can show."""
