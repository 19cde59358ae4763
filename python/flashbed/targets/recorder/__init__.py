"""Records programs as they run: turns the agent's stream of their calls into a recording."""
