"""What an SQL request costs, as a few prices that are fitted to tables: docs/models.md.

`terms` says what a number of requests comes to (records, pages, what is read in), `fit` finds the
price of each, `model` is the file they are kept in, `predict` applies it, `words` says it.
"""
