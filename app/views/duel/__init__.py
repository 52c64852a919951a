"""The Duel page: up to four transformers trained side by side."""
