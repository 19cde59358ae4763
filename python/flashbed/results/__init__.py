"""Tables: the columns of each, and the directory in which a run keeps them."""
