"""What a lab shows: pictures of its instance, schedules by hand, predictions of a class."""
