"""What a placement is, and what it does before the first step."""
