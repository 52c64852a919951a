"""The engine in C++: its source, its compilation, and its library."""
