"""Where each placement trains."""
