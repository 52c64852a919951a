"""`streamlit run app/server.py` opens what `streamlit run app/main.py` does: a host may name either."""

import streamlit as st
from main import serving

app = st.App("page.py", **serving)
