"""The Norm cost page: the time that norms take."""
