"""The engine that compiles a model to a list of operations and runs it in C++, in float32 on a CPU."""
