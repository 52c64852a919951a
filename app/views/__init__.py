"""The pages, a folder each: `page.py` is the page, the other files are its parts."""
