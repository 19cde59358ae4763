"""What everything else stands on: errors, paths, whole files, locks, tables that may be damaged."""
