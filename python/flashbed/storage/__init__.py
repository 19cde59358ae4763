"""Files that are whole or absent, locks between processes, tables that may be damaged."""
