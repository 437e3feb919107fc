"""Which switch: the question, its runs, answer, words and offers."""
