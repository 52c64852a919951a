"""Benchmarks of `normviz bench`: ratios to a named peer, measured in interleaved rounds."""
