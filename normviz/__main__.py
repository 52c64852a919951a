"""`python -m normviz` is `normviz`."""

from .cli import main

if __name__ == "__main__":
    main()
