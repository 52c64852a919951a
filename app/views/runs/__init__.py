"""All stored runs."""
