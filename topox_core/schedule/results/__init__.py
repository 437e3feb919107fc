"""What a schedule is worth and rests on: its report, bound, source, sentence and file."""
