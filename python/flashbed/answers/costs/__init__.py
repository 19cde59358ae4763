"""Prices of SQL requests, fitted to tables (docs/reference/cost-model.md).

`terms` counts what a number of requests takes (records, pages, bytes read in), `cost_fit` finds the
price of each, `model` is the file that keeps them, `predict` applies it, `model_text` prints it.

A model of any chip (README.md): `counting` follows a program's calls and `logs`
counts what a file system writes for them; `device_fit`, `device_model`, `devices`, `device_text`.
"""
