"""`streamlit run` for `normviz app`: it asks no other host, and Ctrl-C is no error."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""


def main() -> None:
    """Run Streamlit's command with this process's words."""
    try:
        import search_path  # noqa: F401 (before all that imports normviz)
        from click import Abort, ClickException
        from normviz.app import streamlit_parts
        from streamlit.web import cli
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    streamlit_parts.ask_no_other_host()
    try:
        cli.main(standalone_mode=False)
    except (Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except ClickException as error:
        error.show()
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
