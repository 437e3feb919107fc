"""One task graph under every fabric and controller: simulators and the optimiser behind one interface."""
