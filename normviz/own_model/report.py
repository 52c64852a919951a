"""The anatomy of a model as a record: what was found, what could not be told, and both in words.

Without torch, so that the page can show it.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from ..catalog import NORMS, SCHEMES
from ..catalog.models import QK_LABELS

NESTED = "the configuration's brackets are nested too deeply"
NO_MISTAKE = "No mistake in the code was found."
"""Where lint finds nothing."""


@dataclass(frozen=True)
class NormFound:
    """A norm of a stack: key of the catalogue (None: not in it), its words, eps, how it scales, and where its
    scale starts; None where that could not be told."""

    key: str | None
    label: str
    eps: float | None
    gain: str
    start: float | None
    count: int

    @property
    def words(self) -> str:
        """Its eps and its scale."""
        eps = f"eps {self.eps:g}" if self.eps is not None else "eps not told"
        from_ = f" from {self.start:.3g}" if self.start is not None else ""
        gains = {
            "none": "no learned scale",
            "unknown": "scale not told",
            "number": "one learned number",
        }
        return f"{eps}, {gains.get(self.gain, self.gain + from_)}"


@dataclass(frozen=True)
class Finding:
    """A known bug of norms that was found: its name, the module's path (and the line of code where it is
    known), what was measured on this model, and how to mend it."""

    name: str
    where: str
    measured: str
    mend: str

    def __str__(self) -> str:
        return f"{self.where}: {self.measured}; {self.mend}"


DEPTH = re.compile(r"\b(deep(er)?|depth)\b|every block")
"""Words of a trouble that is about depth."""


@dataclass(frozen=True)
class StackFound:
    """One stack of blocks.

    path, kinds, blocks   where it is, the classes of its blocks, and how many there are
    width        the last dimension of the stream; None if no stream was found
    placement    key of the catalogue's placement; None where the rules do not decide, and `why` says why
    alike        other keys with the same forward pass, which differ by initial values alone
    exact        whether the gains are the catalogue's too
    formulas     what each sublayer computes, in words
    norms        the norms on the stream and after the branches
    final_norm, embed_norm   the module's path; None if there is none
    qk_norm      none, head, full; None where attention hides it
    scales       gains of branches, of the skip path, of the block
    notes        what could not be followed
    """

    path: str
    kinds: tuple[str, ...]
    blocks: int
    width: int | None
    placement: str | None
    why: str = ""
    alike: tuple[str, ...] = ()
    exact: bool = False
    formulas: tuple[str, ...] = ()
    norms: tuple[NormFound, ...] = ()
    final_norm: str | None = None
    embed_norm: str | None = None
    qk_norm: str | None = None
    scales: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def placement_words(self) -> str:
        """The placement's label, or that it was not told."""
        return SCHEMES.label(self.placement) if self.placement else "not told"

    @property
    def trouble(self) -> str:
        """What the catalogue knows to go wrong with the placement, with the number of blocks where it is
        about depth; empty where the placement was not told."""
        if self.placement is None:
            return ""
        trouble = SCHEMES[self.placement].trouble
        count = f"{self.blocks} block{'s' * (self.blocks != 1)}"
        return f"{trouble} Here: {count}." if DEPTH.search(trouble) else trouble

    @property
    def qk_words(self) -> str:
        """none, per head, full width, or could not be told."""
        return "none" if self.qk_norm == "none" else QK_LABELS[self.qk_norm]

    @property
    def final_words(self) -> str:
        """The path of the final norm, no, or not told: where a stack is not one stream, its end is not
        followed either."""
        return self.final_norm or ("no" if self.placement and self.path else "not told")

    @property
    def norm_key(self) -> str | None:
        """The key of its norm, if all are of one kind."""
        keys = {norm.key for norm in self.norms}
        return next(iter(keys)) if len(keys) == 1 else None


@dataclass(frozen=True)
class Anatomy:
    """A model: its class, the name that it was given, its parameters, its stacks, and its findings."""

    model: str
    name: str
    parameters: int
    stacks: tuple[StackFound, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def lint(self) -> tuple[str, ...]:
        """The findings, a sentence each."""
        return tuple(map(str, self.findings))

    @property
    def main(self) -> StackFound:
        """The stack with most blocks, of equals the last one: a decoder."""
        return max(reversed(self.stacks), key=lambda stack: stack.blocks)

    def to_json(self) -> str:
        """All of it as one JSON object, with the known trouble of each stack's placement."""
        values = asdict(self)
        for stack, record in zip(values["stacks"], self.stacks, strict=True):
            stack["trouble"] = record.trouble
        return json.dumps(values, ensure_ascii=False)

    def unexpected(self, expected: str) -> str:
        """What of "pre,rmsnorm" (keys of placements and norms, with commas) the main stack has not, as one
        sentence; empty if it has all. Raises ValueError for an unknown key."""
        main, wrong = self.main, []
        for key in filter(None, map(str.strip, expected.split(","))):
            if key in SCHEMES:
                has, here = (
                    {main.placement, *main.alike},
                    main.placement or f"not told ({main.why})",
                )
            elif key in NORMS:
                keys = {norm.key or norm.label for norm in main.norms}
                has, here = (keys if len(keys) == 1 else set()), ", ".join(sorted(keys)) or "none"
            else:
                near = difflib.get_close_matches(key, [*SCHEMES.keys(), *NORMS.keys()], 3)
                raise ValueError(
                    f"{key!r} is no key of a placement or a norm: "
                    f"{'near are ' + ', '.join(near) if near else 'see `normviz list`'}"
                )
            if key not in has:
                formulas = f" [{'; '.join(main.formulas)}]" if key in SCHEMES else ""
                wrong.append(f"expected {key}, found {here}{formulas}")
        return (
            f"{self.name}, {main.path or 'the model itself'}: {'; '.join(wrong)}" if wrong else ""
        )

    @property
    def lint_words(self) -> tuple[str, ...]:
        """What lint says, or that it found nothing."""
        return self.lint or (NO_MISTAKE,)

    def __str__(self) -> str:
        return text(self)


def parse_anatomy(given: str | dict[str, Any]) -> Anatomy:
    """The anatomy in JSON that `Anatomy.to_json` wrote."""
    values: Any = json.loads(given) if isinstance(given, str) else given
    stacks = []
    for stack in values["stacks"]:
        norms = tuple(NormFound(**norm) for norm in stack["norms"])
        own: Any = {k: v for k, v in stack.items() if k != "trouble"}  # the catalogue has it
        lists = {k: tuple(v) for k, v in own.items() if isinstance(v, list) and k != "norms"}
        stacks.append(StackFound(**(own | lists | {"norms": norms})))
    findings = tuple(Finding(**found) for found in values["findings"])
    return Anatomy(**(values | {"stacks": tuple(stacks), "findings": findings}))


def text(anatomy: Anatomy) -> str:
    """The anatomy for a terminal of 100 columns."""
    lines: list[str] = []
    for stack in anatomy.stacks:
        kinds = ", ".join(stack.kinds)
        width = f", width {stack.width}" if stack.width else ""
        many = f"{stack.blocks} block{'s' * (stack.blocks != 1)}"
        lines.append(
            f"{anatomy.model}  {many} of {kinds} at {stack.path or 'the model itself'}{width}"
        )
        lines += [f"{title:<15} {words}" for title, words in _rows(stack)]
        lines.append("")
    lines += [f"lint            {sentence}" for sentence in anatomy.lint_words]
    return "\n".join(lines).rstrip()


def _rows(stack: StackFound) -> list[tuple[str, str]]:
    """Title and words of each line of a stack."""
    formulas = "; ".join(stack.formulas)
    placed = f"{stack.placement_words}  {formulas}" if stack.placement else f"not told: {stack.why}"
    rows = [("placement", placed)]
    if not stack.placement and formulas:
        rows.append(("", formulas))
    if stack.trouble:
        rows.append(("known trouble", stack.trouble))
    if stack.alike:
        also = "; ".join(SCHEMES.label(key) for key in stack.alike)
        rows.append(
            ("same as", f"{also}: they differ by initial values or in training, not in this")
        )
    for norm in stack.norms:
        rows.append(("norm", f"{norm.label}  {norm.words}, {norm.count} in the blocks"))
    if not stack.norms:
        rows.append(("norm", "none found on the stream"))
    rows.append(
        ("final norm", f"yes ({stack.final_norm})" if stack.final_norm else stack.final_words)
    )
    rows.append(("QK-norm", stack.qk_words))
    rows.append(("embedding norm", f"yes ({stack.embed_norm})" if stack.embed_norm else "no"))
    rows.append(("scales", "; ".join(stack.scales) or "none"))
    rows += [("not followed", note) for note in stack.notes]
    return rows
