"""The solve beside the page: engines and the local search race for the best schedule and the best bound."""
