"""The Streamlit pages: `main.py` is what Streamlit runs, `page.py` the page's script."""
