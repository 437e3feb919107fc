"""What the user chose: the scenario, page states, the address, what is loaded."""
