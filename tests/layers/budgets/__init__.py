"""Flash budgets: limits, baselines, verdicts."""
