"""The Maps page: where each placement trains."""
