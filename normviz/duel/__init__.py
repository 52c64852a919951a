"""What the Duel page starts from: presets, repeats with other seeds, and what to try next."""
