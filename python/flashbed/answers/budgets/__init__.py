"""Flash budgets: what programs may cost, and whether they keep to it."""
