"""Tests of what records say of their fields."""
