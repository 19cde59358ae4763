"""Chips that are described elsewhere: a kernel's tables, a parameter page, a board's own words."""
