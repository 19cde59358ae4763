"""Files that are whole or not there, locks between processes, tables that may be damaged."""
