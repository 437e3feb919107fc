"""The problem as the field knows it: tasks, resources and slots, smaller where it may be, from and to PSPLIB."""
