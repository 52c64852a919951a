"""The player: a duel's charts in a browser, live from a socket or from one file without a server.

`message` says what travels, `bundle` the script that draws it, `page` writes the file. The same
script runs in all of them, so a replay moves exactly as the live page did.
"""

from .bundle import SCRIPTS, css, folder, joined, script, vega, version
from .message import CARRIED, VIEWS, ChartOptions, Have, Sent, View, message
from .page import SharedFiles, document, in_script, page, posted, posted_page, script_tags

__all__ = [
    "CARRIED",
    "SCRIPTS",
    "VIEWS",
    "ChartOptions",
    "Have",
    "Sent",
    "SharedFiles",
    "View",
    "css",
    "document",
    "folder",
    "in_script",
    "joined",
    "message",
    "page",
    "posted",
    "posted_page",
    "script",
    "script_tags",
    "vega",
    "version",
]
