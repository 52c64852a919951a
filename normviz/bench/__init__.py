"""Benchmarks behind `normviz bench`: ratios measured in one run, interleaved, against a named peer."""
