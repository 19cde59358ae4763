"""What to run: an experiment, its cases, the claims it judges and the study it belongs to."""
