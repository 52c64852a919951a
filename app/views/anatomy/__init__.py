"""The Anatomy page: what a placement is, and what it does before the first step."""
