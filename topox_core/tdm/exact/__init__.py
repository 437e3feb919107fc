"""The exact model of time division, in HiGHS."""
