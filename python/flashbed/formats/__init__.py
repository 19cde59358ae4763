"""What goes in and comes out: operations, tables, profiles, and the words they are made of."""
