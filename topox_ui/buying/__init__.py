"""What to buy: switches on offer, the answer, the questions turned round, and what it hangs on."""
