"""Cases run in portions."""
