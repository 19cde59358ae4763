"""Programs recorded as they run: the agent's stream of their calls becomes a recording."""
