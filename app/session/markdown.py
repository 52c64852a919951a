"""Escapes text for Markdown."""

from __future__ import annotations

import re

from normviz.config import SETTINGS

ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
TITLES = {name: setting.title for name, setting in SETTINGS.items()}
SETTING = re.compile(
    rf"\b(?:{'|'.join(name for name in TITLES if '_' in name)})\b(?!=)|\b(?:{'|'.join(TITLES)})\b(?= is )"
)
"""A setting's name in the sentence of an error; what a link would have, as in seq_len=16, is none."""

JOINER = "\u2060"
"""An invisible character of no width that ends an address."""
ADDRESS = re.compile(r"(?i)(?<=https)(?=://)|(?<=http)(?=://)|(?<=www)(?=\.)|(?=@)")
"""Where text begins to look like an address. Streamlit makes links of addresses, escaped or not."""


def capital(words: str) -> str:
    """Words with an upper-case letter first; a setting's name there, as in init_seed, becomes words."""
    first, space, rest = words.partition(" ")
    return f"{first[:1].upper()}{first[1:].replace('_', ' ')}{space}{rest}"


def titled(words: str) -> str:
    """An error with the settings' titles for their names: "FFN ratio is" for "ffn_ratio is"."""
    return SETTING.sub(lambda match: TITLES[match[0]], words)


def sentence(words: str) -> str:
    """Words as a sentence: an upper-case letter first, a full stop last, or the mark of a question."""
    return f"{capital(words)}{'' if words.endswith(('.', '?')) else '.'}"


def literal(text: str) -> str:
    """Escape text so that Markdown shows it unchanged: HybridNorm* keeps its star, an address is no link."""
    return re.sub(r"([\\`*_{}\[\]<>#$~|:^])", r"\\\1", ADDRESS.sub(JOINER, text))


def source(text: str) -> str:
    """A source as Markdown, with its papers as links."""
    parts = ARXIV.split(text)  # text and arXiv numbers alternate
    return "".join(
        f"[arXiv\\:{part}](https://arxiv.org/abs/{part})" if i % 2 else literal(part)
        for i, part in enumerate(parts)
    )
