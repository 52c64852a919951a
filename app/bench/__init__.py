"""Programs that benchmarks run in processes of their own."""
