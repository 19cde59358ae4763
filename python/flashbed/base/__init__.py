"""What everything else uses: errors, paths, whole files, locks, tables that may be damaged."""
