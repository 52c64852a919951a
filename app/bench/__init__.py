"""What benchmarks run in processes of their own."""
