"""The input formats: operations, profiles, and the types of their fields."""
