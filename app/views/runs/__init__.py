"""The Runs page: all stored runs."""
