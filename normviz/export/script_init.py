"""The script's lines that draw the initial values: the rule of `normviz.nn.init`, written out."""

from __future__ import annotations

from textwrap import wrap

from ..catalog import SCHEMES
from ..catalog.scheme import Gain, Matrix, Place, Slots
from ..config import RunConfig

DRAW = '''
def draw(name, values, size{normal}):
    """Every parameter draws from a generator of its own, seeded by INIT_SEED and its name."""
    digest = hashlib.sha256(f"{{INIT_SEED}}:{{name}}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
{body}'''
NORMAL = "    values.normal_(0.0, size, generator=generator)"
WIDTH = 84
"""Characters in a row of numbers."""
UNIFORM = "    values.uniform_(-1.0, 1.0, generator=generator).mul_(size)"
EITHER = f"""    if normal:
    {NORMAL}
    else:
    {UNIFORM}"""

MATRICES: dict[str, tuple[str, ...]] = {
    "xavier": ("(6 / (D + D)) ** 0.5", "(6 / (D + D)) ** 0.5", *("(6 / (D + HIDDEN)) ** 0.5",) * 2),
    "torch": ("(6 / (D + 3 * D)) ** 0.5", "D**-0.5", "D**-0.5", "HIDDEN**-0.5"),
    "gpt2": ("SMALL", "SMALL / (2 * L) ** 0.5") * 2,
    "gpt2_width": ("SMALL", "SMALL / (2 * L) ** 0.5") * 2,
}
"""Sizes of qkv, out, up and down: half-widths of uniform distributions, or standard deviations."""

SMALL = {"gpt2": "SMALL = 0.02", "gpt2_width": "SMALL = 0.02 * (768 / D) ** 0.5"}
NAMES = ("qkv", "out", "up", "down")


def initial_values(config: RunConfig) -> list[str]:
    """Sources of the function that draws, and of the lines that apply it to `model`."""
    c, gpt2 = config, config.init in SMALL
    own = SCHEMES[c.scheme].embedding_std
    tokens = repr(own(c.width, c.depth)) if own else "SMALL" if gpt2 else "1.0"
    positions, head = ("SMALL", "SMALL") if gpt2 else ("0.5", "(6 / (D + V)) ** 0.5")
    normal = "" if gpt2 else ", normal=True"
    lines = [
        *([SMALL[c.init]] if gpt2 else []),
        "model = Model()",
        "with torch.no_grad():  # norms, gains and gates start as the classes above make them",
        f'    draw("tokens.weight", model.tokens.weight, {tokens}{normal})',
        f'    draw("positions.weight", model.positions.weight, {positions}{normal})',
        f'    draw("head.weight", model.head.weight, {head})',
        "    for i, block in enumerate(model.blocks):",
        '        at, ff = f"blocks.{i}.attention.branch", f"blocks.{i}.ffn.branch"',
    ]
    for name, size in zip(NAMES, MATRICES[c.init], strict=True):
        lines.append(_drawn(name, "weight", size))
    if c.init == "torch":
        lines += [_drawn("up", "bias", "D**-0.5"), _drawn("down", "bias", "HIDDEN**-0.5")]
        lines += [f"        {_path(name)}.bias.zero_()" for name in ("qkv", "out")]
    else:
        lines += [
            f"        for linear in ({', '.join(map(_path, NAMES))}):",
            "            linear.bias.zero_()",
        ]
    lines += _gains(c)
    if SCHEMES[c.scheme].constraint != "none":
        lines.append("model.constrain()")
    function = DRAW.format(normal="" if gpt2 else ", normal=False", body=NORMAL if gpt2 else EITHER)
    return [function, "\n" + "\n".join(lines)]


def _path(name: str) -> str:
    return f"block.{'attention' if name in ('qkv', 'out') else 'ffn'}.{name}"


def _drawn(name: str, part: str, size: str) -> str:
    prefix = "at" if name in ("qkv", "out") else "ff"
    return f'        draw(f"{{{prefix}}}.{name}.{part}", {_path(name)}.{part}, {size})'


def _gains(c: RunConfig) -> list[str]:
    """The scheme's own factors, applied after the chosen initialisation."""
    gain, lines = SCHEMES[c.scheme].weight_gain, list[str]()
    label = SCHEMES.label(c.scheme)
    slices: tuple[tuple[str, Matrix], ...] = (
        ("block.attention.qkv.weight[: 2 * D]", "query_key"),
        ("block.attention.qkv.weight[2 * D :]", "value"),
        ("block.attention.out.weight", "out"),
        ("block.ffn.up.weight", "up"),
        ("block.ffn.down.weight", "down"),
    )
    table: list[float] = []
    for target, matrix in slices:
        branch = "ffn" if matrix in ("up", "down") else "attention"
        by = [gain(Place(b, c.depth, branch), matrix) for b in range(1, c.depth + 1)]
        if set(by) == {1.0}:
            continue
        alike = len(set(by)) == 1
        if not alike and by != table:
            table = by
            lines += _listed(by)
        lines.append(f"        {target}.mul_({repr(by[0]) if alike else 'factor'})")
    return [f"        # {label} scales them:", *lines] if lines else []


def _listed(factors: list[float]) -> list[str]:
    """Lines that select a block's factor."""
    rows = wrap(", ".join(map(repr, factors)), WIDTH)
    return ["        factor = [", *(f"            {row}" for row in rows), "        ][i]"]


PROFILED = Slots(norm_main=True, skip_gain=Gain(1.0, "channel"))


def profile(config: RunConfig) -> list[str]:
    """Lines of Admin's pass over the first batch, for schemes that need it.

    Raises ValueError for a scheme whose wiring is not Admin's.
    """
    c, scheme = config, SCHEMES[config.scheme]
    if not scheme.profiled:
        return []
    places = (Place(b, c.depth, f) for b in range(1, c.depth + 1) for f in ("attention", "ffn"))
    alike = all(scheme.slots(place) == PROFILED for place in places)
    if not alike or scheme.streams != "one" or scheme.embed_norm:
        raise ValueError(
            f"{scheme.label} starts from a forward pass that a script of its own does not know how "
            "to write: only Admin's wiring is known"
        )
    norm = "" if c.norm == "none" else "getattr(block, branch + '_norm_main')"
    total = f"{norm}(skip + f)".replace("'", '"') if norm else "skip + f"
    x = "model.tokens(inputs) + model.positions.weight"
    return [
        "",
        f"# {scheme.label}: one pass over the first batch sets the gains of the skip paths, so that no",
        "# sublayer outweighs what came before.",
        "with torch.no_grad():",
        "    inputs, _ = batch(0)",
        f"    omega, x = 1.0, {f'dropout({x}, True)' if c.dropout else x}",
        "    for block in model.blocks:",
        '        for branch in ("attention", "ffn"):',
        '            gain = getattr(block, branch + "_skip_gain").fill_(omega)',
        "            f, skip = getattr(block, branch)(x), x * gain",
        "            omega = (skip.var().item() + f.var().item()) ** 0.5",
        f"            x = {total}",
    ]
