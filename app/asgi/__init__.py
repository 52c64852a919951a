"""What the server answers beside the pages: the charts' numbers, pictures, health, uploads, cookie."""
