"""Tables: the columns of each, and the directory that a run keeps them in."""
