"""What the server answers beside the pages: the charts' numbers, health, uploads, the visitor's cookie."""
