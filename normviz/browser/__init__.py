"""Static pages: replays, and the page that trains in a browser."""
