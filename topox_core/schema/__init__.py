"""Settings said once: a field's type, range, unit and words, and the error lines that follow from them."""
