"""Tests of where the space of a partition is."""
