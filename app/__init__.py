"""The Streamlit pages: `server.py` is what Streamlit runs, `main.py` the page's script."""
