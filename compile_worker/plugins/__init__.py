"""What a user's Python file declares, and how its text becomes that."""
