"""What goes in: operations, profiles, and the words they are made of."""
