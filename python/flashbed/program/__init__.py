"""What runs on a stack: operations, and recordings of programs, made into operations."""
