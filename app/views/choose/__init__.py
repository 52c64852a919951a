"""The guide: which placement to choose."""
