"""Measurements that no training run records: each takes a config and returns numbers by name.

The module of a lab has its name and one function `measure(config) -> dict[str, float]`; a claim
names it. `execution.cell.lab_numbers` calls it in a process of its own.
"""
