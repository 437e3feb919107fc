"""Networks beside each other: iterations, circuits laid, who wins where, what they cost, which to buy."""
