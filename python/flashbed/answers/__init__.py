"""What is worked out from tables: measures, verdicts, energies, prices of SQL, years."""
