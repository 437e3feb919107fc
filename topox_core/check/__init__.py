"""The independent checker: reads input and result, shares no code with the engines."""
