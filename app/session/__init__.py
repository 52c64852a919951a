"""What all pages of a session share: the back end, the visitor's id, the open runs, the URL."""
