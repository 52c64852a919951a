"""What explains: presets, the tour, the guide, anatomy and norms by hand."""
