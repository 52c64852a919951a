"""What `normviz bench` measures; `cli/bench.py` has the commands."""
