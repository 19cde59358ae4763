"""What is to be run: an experiment, its cases, the claims it judges and the study it is of."""
