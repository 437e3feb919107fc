"""One module and one TOML file a card."""
