"""What to set below a program (docs/models/advice.md): pure functions of rows of choices."""
