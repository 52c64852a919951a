"""The Assignments page."""
