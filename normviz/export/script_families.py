"""The parts of a script for models that are not decoders: data, and initial values."""

from __future__ import annotations

from textwrap import wrap

from ..catalog import FAMILIES, PLACEMENTS, SCHEMES, TASKS
from ..catalog.scheme import Matrix, Place, plain
from ..config import RunConfig
from ..model.graphs import NEAREST, digits_graph, karate
from ..model.images import HELD_OUT, scale, standardised

IMAGES = """
# The 1,797 digits of scikit-learn: its file digits.csv.gz as in `python script.py digits.csv.gz`, else the
# installed package.
if len(sys.argv) == 2:
    ROWS = [line.split(",") for line in gzip.open(sys.argv[1], "rt").read().split()]
    TABLE = torch.tensor([[int(float(x)) for x in row] for row in ROWS])
    PIXELS, LABELS = TABLE[:, :64], TABLE[:, 64]
else:
    from sklearn.datasets import load_digits

    PIXELS, LABELS = (torch.from_numpy(x).long() for x in load_digits(return_X_y=True))
# Less the mean of the trained images, over their standard deviation.
IMAGES = ((PIXELS.double() - {mean!r}) / {deviation!r}).float()"""
DIGITS = """
IMAGES, LABELS = IMAGES{place}, LABELS{place}


def batch(step):
    \"\"\"Inputs [BATCH, 64] and targets [BATCH] of a step: images that are not held out.\"\"\"
    rows = random_below({trained}, BATCH, step)
    return IMAGES[rows], LABELS[rows]"""
CLUB = """
# Zachary's karate club: friendships, and the side of each member.
EDGES = torch.tensor([
{edges}
])
LABELS = torch.tensor({labels})
FEATURES = {n} ** 0.5 * torch.eye({n})"""
NEAR = """
# The first {n} digits, each joined with the {nearest} whose pixels are nearest.
FEATURES, LABELS, P = IMAGES[:{n}], LABELS[:{n}], PIXELS[:{n}]
SQUARES = (P * P).sum(1)
DISTANCE = SQUARES[:, None] + SQUARES - 2 * P @ P.T
DISTANCE.fill_diagonal_(2**62)
NEAREST = DISTANCE.argsort(dim=1, stable=True)[:, :{nearest}]
EDGES = torch.stack([torch.arange({n}).repeat_interleave({nearest}), NEAREST.flatten()], 1)"""
GRAPH = """
A = torch.eye({n}, dtype=torch.float64)
A[EDGES[:, 0], EDGES[:, 1]] = A[EDGES[:, 1], EDGES[:, 0]] = 1
ROOT = A.sum(1) ** -0.5
A = (ROOT[:, None] * A * ROOT).float(){place}"""
NODES = """
ORDER = uniform({n}, "shown", DATA_SEED, 0)[:{n}].argsort()
SHOWN = torch.cat([ORDER[LABELS[ORDER] == k][:{shown}] for k in range(V)])
TARGETS = torch.full_like(LABELS, -100)  # the loss counts the nodes shown alone
TARGETS[SHOWN] = LABELS[SHOWN]
FEATURES, TARGETS = FEATURES{place}, TARGETS{place}


def batch(step):
    \"\"\"The whole graph, in every step.\"\"\"
    return FEATURES, TARGETS"""


def data(c: RunConfig, place: str) -> list[str]:
    """Sources of the images or the graph of a task; `place` moves a tensor to the device."""
    _, _, trained = standardised()
    mean, deviation = scale()
    images = IMAGES.format(mean=mean, deviation=deviation, trained=trained, held_out=HELD_OUT)
    if c.task == "digits":
        return [images]
    n = TASKS[c.task].nodes
    graph = GRAPH.format(n=n, place=place)
    if c.task == "digits_graph":
        return [images, NEAR.format(n=n, nearest=NEAREST), graph]
    edges = wrap(", ".join(f"({a}, {b})" for a, b in karate().edges.tolist()), 96)
    listed = "\n".join(f"    {row}" for row in edges)
    return [CLUB.format(edges=listed, labels=karate().labels.tolist(), n=n), graph]


def batches(c: RunConfig, place: str) -> str:
    """Source of the batches of a task."""
    if c.task == "digits":
        return DIGITS.format(trained=standardised()[2], place=place)
    found = (karate if c.task == "karate" else digits_graph)()
    return NODES.format(n=len(found.labels), shown=found.shown, place=place)


BRANCHES: dict[str, tuple[tuple[str, str, int, Matrix], ...]] = {
    "attention": (("attention", "qkv", 0, "value"), ("attention", "out", 1, "out")),
    "first": (("first", "up", 2, "up"), ("first", "down", 3, "down")),
    "messages": (("messages", "value", 0, "value"), ("messages", "out", 1, "out")),
}
FFN: tuple[tuple[str, str, int, Matrix], ...] = (("ffn", "up", 2, "up"), ("ffn", "down", 3, "down"))
"""Of each map of a block: its branch, its name, the place of its size in the initialisation, its matrix."""


def maps(c: RunConfig) -> tuple[tuple[str, str, int, Matrix], ...]:
    """All maps of a block of a residual stack."""
    return BRANCHES[FAMILIES[c.family].first or ""] + FFN


def initial_lines(
    c: RunConfig, sizes: tuple[str, ...], ends: tuple[str, str, str], normal: str
) -> list[str]:
    """Lines that draw the parameters of `model`, inside `with torch.no_grad()`; `sizes` of the four maps of a
    block and `ends` of tokens, positions and head, `normal` the argument that asks for a normal draw.

    Raises ValueError for a placement whose gains come from a first forward pass.
    """
    tokens, positions, head = ends
    own = SCHEMES[c.scheme].embedding_std if c.scheme in SCHEMES else None
    tokens = repr(own(c.width, c.depth)) if own else tokens
    lines = []
    if c.task in ("digits", "karate", "digits_graph"):
        lines += [
            "    n = model.inputs.in_features",
            f'    draw("inputs.weight", model.inputs.weight, {tokens} * n**-0.5{normal})',
            "    model.inputs.bias.zero_()",
        ]
    else:
        lines.append(f'    draw("tokens.weight", model.tokens.weight, {tokens}{normal})')
    if c.family == "vit":
        lines.append(f'    draw("class_token.weight", model.class_token.weight, {tokens}{normal})')
        if c.positions == "learned":
            lines.append(
                f'    draw("positions.weight", model.positions.weight, {positions}{normal})'
            )
    lines.append(f'    draw("head.weight", model.head.weight, {head})')
    lines.append("    for i, block in enumerate(model.blocks):")
    if c.scheme not in SCHEMES:
        return lines + _cell_lines(c)
    if SCHEMES[c.scheme].profiled:
        raise ValueError(
            f"{PLACEMENTS.label(c.scheme)} starts from a forward pass that a script of a {c.family} does not "
            "know how to write: its script is written for decoders alone"
        )
    for branch, name, at, _ in maps(c):
        key, here = f'f"blocks.{{i}}.{branch}.branch.{name}', f"block.{branch}.{name}"
        lines.append(f'        draw({key}.weight", {here}.weight, {sizes[at]})')
        where = f"{here}.bias"
        size = {"up": "D**-0.5", "down": "HIDDEN**-0.5"}.get(name)
        if c.init == "torch" and size:
            lines.append(
                f'        draw(f"blocks.{{i}}.{branch}.branch.{name}.bias", {where}, {size})'
            )
        else:
            lines.append(f"        {where}.zero_()")
    return lines + _gains(c)


def _gains(c: RunConfig) -> list[str]:
    """The scheme's own factors and the weight gain, applied after the chosen initialisation."""
    own, lines = SCHEMES[c.scheme].weight_gain, list[str]()
    if own is plain and c.weight_gain == 1.0:
        return []
    for k, (branch, name, _, matrix) in enumerate(maps(c)):
        which = "attention" if k < 2 else "ffn"
        places = [Place(b, c.depth, which) for b in range(1, c.depth + 1)]
        parts = [("", matrix)]
        if name == "qkv":
            parts = [("[: 2 * D]", "query_key"), ("[2 * D :]", "value")]
        for part, one in parts:
            by = [own(place, one) * c.weight_gain for place in places]  # pyright: ignore
            factor = repr(by[0]) if len(set(by)) == 1 else f"{by}[i]"
            if set(by) != {1.0}:
                lines.append(f"        block.{branch}.{name}.weight{part}.mul_({factor})")
    return lines


CELL = {"xavier": "(6 / (D + D)) ** 0.5", "fairseq": "(6 / (D + D)) ** 0.5", "torch": "D**-0.5"}


def _cell_lines(c: RunConfig) -> list[str]:
    size, lines = CELL.get(c.init, "SMALL"), list[str]()
    for name in ("hidden", "input"):
        lines.append(f'        draw(f"blocks.{{i}}.{name}.weight", block.{name}.weight, {size})')
        if c.weight_gain != 1.0:
            lines.append(f"        block.{name}.weight.mul_({c.weight_gain!r})")
    if c.init == "torch":
        lines.append(f'        draw(f"blocks.{{i}}.bias", block.bias, {size})')
    return lines
