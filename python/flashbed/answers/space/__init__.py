"""Where the space of a partition is, in words and rows."""
