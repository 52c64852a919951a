"""Two to four transformers trained side by side."""
