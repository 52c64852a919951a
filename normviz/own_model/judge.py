"""The sublayers of a block, from the symbol of its result, and the placement that their norms make."""

from __future__ import annotations

from dataclasses import dataclass, field

from .symbols import Made, Normed, Scaled, Stream, Sum, Symbol, Viewed, bare, same, sources


class Undecided(Exception):
    """The rules do not decide; the message names the reason."""


@dataclass
class Branch:
    """One branch of a sublayer.

    norm_in, norm_out  names of the norms before and after it
    scaled             the number or parameter that it is multiplied by, or empty
    parts              the kinds of operations in it
    role               attention, mixer, mlp, or empty where the parts do not tell
    root               what it computes, before the norm after it and its scale
    """

    norm_in: str | None = None
    norm_out: str | None = None
    scaled: str = ""
    parts: set[str] = field(default_factory=set)
    role: str = ""
    root: Symbol | None = None


@dataclass
class Sublayer:
    """A residual addition: its branches, the norm of the sum, the scale of the skip path, and whether that
    is one number."""

    branches: list[Branch]
    norm_main: str | None = None
    skip_scaled: str = ""
    by_number: bool = False


@dataclass
class Judged:
    """A block: its sublayers, first to last, the norm on the stream before them, if any, and the number that
    its result is multiplied by, or empty."""

    sublayers: list[Sublayer]
    enters: str | None = None
    scaled: str = ""


def judge(result: Symbol) -> Judged:
    """Decompose a block's result. Raises Undecided."""
    judged = Judged([])
    stream = bare(result)
    while not isinstance(stream, Stream):
        stream, sublayer = _peel(stream, judged)
        if sublayer is not None:
            judged.sublayers.insert(0, sublayer)
    if not judged.sublayers:
        raise Undecided("no residual addition was found")
    return judged


TURNS = 2
"""A sum of three terms has three ways to put its parentheses: one is written, two are left to try."""


def _peel(stream: Symbol, judged: Judged, turns: int = TURNS) -> tuple[Symbol, Sublayer | None]:
    """The input of the last sublayer, and that sublayer."""
    main = None
    if isinstance(stream, Normed):
        main = stream.name
        stream = bare(stream.of)
        if isinstance(stream, Stream):
            judged.enters = main
            return stream, None
    if isinstance(stream, Scaled) and stream.number and main is None and not judged.sublayers:
        judged.scaled = stream.by
        stream = bare(stream.of)
    if isinstance(stream, Scaled):
        raise Undecided(f"the stream is multiplied by {stream.by}")
    if not isinstance(stream, Sum):
        raise Undecided("what leaves the layer is not a sum of a stream and a branch")
    why = Undecided("a sum of two things that are both no stream")
    for skip, rest in ((stream.first, stream.second), (stream.second, stream.first)):
        scale, number, source = _unscaled(skip)
        try:
            branches = _branches(rest, source)
        except Undecided as error:
            why = error
            continue
        return source, Sublayer(branches, main, scale, number)
    if turns and (turned := _turned(stream)) is not None:
        return _peel(Normed(main, turned) if main else turned, judged, turns - 1)
    raise why


def _turned(stream: Sum) -> Sum | None:
    """(a + b) + c as a + (b + c): the parentheses do not show which term is the stream."""
    for side, other in ((stream.first, stream.second), (stream.second, stream.first)):
        side = bare(side)
        if isinstance(side, Sum):
            for term, moved in ((side.first, side.second), (side.second, side.first)):
                if isinstance(bare(term), Stream | Normed) and not isinstance(bare(moved), Stream):
                    return Sum(term, Sum(moved, other))
    return None


def _unscaled(skip: Symbol) -> tuple[str, bool, Symbol]:
    """The scale of a skip path, whether it is one number, and what is scaled."""
    skip = bare(skip)
    if isinstance(skip, Scaled):
        return skip.by, skip.number, bare(skip.of)
    return "", False, skip


def _branches(rest: Symbol, source: Symbol) -> list[Branch]:
    """The branches that a sum adds to a stream; each must start from that stream."""
    if not isinstance(source, Stream | Normed | Sum):
        raise Undecided("what is added to is not a stream")
    branch = Branch()
    rest = _unwrapped(rest, source, branch)
    if isinstance(rest, Sum):
        both = _branches(rest.first, source) + _branches(rest.second, source)
        for each in both:
            each.norm_out = branch.norm_out or each.norm_out
            each.scaled = branch.scaled or each.scaled
        return both
    if isinstance(rest, Stream):
        raise Undecided("the stream is added to a sum that has it already")
    if not isinstance(rest, Made):
        raise Undecided("a branch is not computed from anything")
    branch.root = rest
    starts: set[str | None] = set()
    _walk(rest, source, branch, starts, set())
    if not starts:
        raise Undecided("a branch does not start from the stream that it is added to")
    if len(starts) > 1:
        raise Undecided("a branch reads the stream both with and without a norm, or through two")
    (branch.norm_in,) = starts
    return [branch]


def _unwrapped(rest: Symbol, source: Symbol, branch: Branch) -> Symbol:
    """A branch without the norm after it and without its scale."""
    rest = bare(rest)
    while isinstance(rest, Scaled) or (isinstance(rest, Normed) and not same(rest.of, source)):
        if isinstance(rest, Normed):
            if branch.norm_out is not None:
                raise Undecided("two norms behind a branch")
            branch.norm_out = rest.name
        else:
            branch.scaled = rest.by
        rest = bare(rest.of)
    return Made((rest.first, rest.second)) if isinstance(rest, Sum) and _is_inner(rest) else rest


def _is_inner(addition: Sum) -> bool:
    """Whether one term depends on the other: an addition inside one branch, not two branches."""
    return _holds(addition.first, addition.second) or _holds(addition.second, addition.first)


def _holds(symbol: Symbol, part: Symbol) -> bool:
    """Whether a symbol depends on another."""
    return any(same(each, part) for each in sources(symbol))


def _walk(
    symbol: Symbol, source: Symbol, branch: Branch, starts: set[str | None], seen: set[int]
) -> None:
    """Follow a branch back to the stream, collecting its parts."""
    if id(symbol) in seen:
        return
    seen.add(id(symbol))
    if same(symbol, source):
        starts.add(None)
        return
    match symbol:
        case Normed(name, of) if same(of, source) or same(_unscaled(of)[2], source):
            starts.add(name)
        case Made(of=parts, by=by):
            branch.parts.add(by)
            for part in parts:
                _walk(part, source, branch, starts, seen)
        case Sum(first, second):
            _walk(first, source, branch, starts, seen)
            _walk(second, source, branch, starts, seen)
        case Normed(of=of) | Scaled(of=of) | Viewed(of=of):
            _walk(of, source, branch, starts, seen)


def placement(judged: Judged) -> str:
    """The catalogue's key, gains aside. Raises Undecided if sublayers differ or the placement has no key."""
    if judged.enters and len(judged.sublayers) > 1:
        inner = {_form(s) for s in judged.sublayers[:-1]}
        if inner == {"post"} and _form(judged.sublayers[-1]) == "none":
            return "skip_norm"
    if judged.enters:
        raise Undecided("a norm stands on the stream itself before the first sublayer")
    form = _common_form(judged)
    factors = [(s.skip_scaled, s.by_number) for s in judged.sublayers if s.skip_scaled]
    factors += [(judged.scaled, True)] if judged.scaled else []
    for by, is_number in factors:
        # A number that scales a stream that is only read through norms is a factor of the branches.
        if not (is_number and form in READ_THROUGH_NORMS):
            raise Undecided(f"{form}, with the skip path multiplied by {by}")
    return form


READ_THROUGH_NORMS = ("pre", "sandwich", "parallel", "parallel_two")
MAIN = {"attention", "mlp"}
"""The roles of branches that a sublayer of every block has."""


def _common_form(judged: Judged) -> str:
    """The form of all sublayers, else of attention and feed-forward. Raises Undecided."""
    each = [_form(s) for s in judged.sublayers]
    if len(each) > 1:  # two parts of one sublayer, such as routed and shared experts
        each = ["pre" if form == "parallel" else form for form in each]
    roles = [{branch.role for branch in s.branches} for s in judged.sublayers]
    main = {form for form, of in zip(each, roles, strict=True) if of & MAIN}
    both = set().union(*roles) >= MAIN
    forms = main if len(set(each)) > 1 and both and len(main) == 1 else set(each)
    if len(forms) > 1:
        raise Undecided(f"its sublayers differ: {', '.join(each)}")
    (form,) = forms
    return form


FORMS = {
    (True, False, False): "pre", (False, False, True): "post", (True, True, False): "sandwich",
    (False, True, False): "resp", (True, False, True): "pre_post_main",
    (False, False, False): "none",
}  # fmt: skip
"""By (norm before the branch, norm after it, norm on the sum)."""


def _form(sublayer: Sublayer) -> str:
    shapes = {(b.norm_in is not None, b.norm_out is not None) for b in sublayer.branches}
    if len(shapes) > 1:
        raise Undecided("parallel branches whose norms differ")
    (shape,) = shapes
    form = FORMS.get((*shape, sublayer.norm_main is not None))
    if form is None:
        raise Undecided("norms behind the branch and on the sum")
    if len(sublayer.branches) == 1:
        return form
    if form != "pre":
        raise Undecided(f"{len(sublayer.branches)} parallel branches, {form}")
    names = {b.norm_in for b in sublayer.branches}
    return "parallel_two" if 1 < len(names) == len(sublayer.branches) else "parallel"
