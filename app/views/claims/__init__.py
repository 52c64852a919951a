"""The Claims page: what the field says about norm placement, tested here."""
