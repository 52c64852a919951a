"""What the field says of norm placement, and what came of it here."""
