"""The History page: all stored runs."""
