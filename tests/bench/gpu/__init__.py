"""A check of the CUDA path: `python -m tests.bench.gpu OUT` runs it on a machine with a GPU."""
