"""A lane as one short script in plain PyTorch that gives the same losses.

`script` puts the parts together: the model of `normviz.anatomy`, batches, initial values, and the training
loop. On one machine with one number of threads the script's losses equal the run's bit for bit.
"""

from __future__ import annotations

import math
import re
from textwrap import fill, wrap

from ..anatomy import classes, head_imports, sizes
from ..anatomy.code import dropout
from ..catalog import NORMS, PLACEMENTS, SCHEMES, STREAMS, TASKS
from ..catalog.choices import GATED
from ..catalog.scheme import Gain, Matrix, Place, Slots, plain
from ..catalog.tasks import ENTRIES, HOPS
from ..config import BASE_DEPTH, BASE_WIDTH, RunConfig
from ..limits import HELD_OUT, MAX_SYMBOLS
from ..model.corpora import STATES, SUCCESSOR_P, chain, masked_count, prose
from ..observed import configured
from . import script_families
from .lane import ExportLane

IMPORTS: dict[str, tuple[str, ...]] = {
    "prose": ("from pydoc_data.topics import topics",),
    "prose_split": ("from pydoc_data.topics import topics",),
    "text": ("import collections", "import pathlib", "import sys"),
    "digits": ("import gzip", "import sys"),
    "digits_graph": ("import gzip", "import sys"),
}
"""What the sources of a task's data need."""
CELL = [".hidden.weight", ".input.weight"]
SEEDS = """INIT_SEED, DATA_SEED, BATCH = {init_seed}, {data_seed}, {batch}  # sequences a step
torch.set_num_threads({threads})  # another number of threads rounds differently"""

# Random numbers, as `normviz.model.draws` draws them.

WORDS = '''
def times(a, b):
    """Both 64-bit halves of the products of words [n] and a number."""
    low, x, y = 2**32 - 1, a & (2**32 - 1), a >> 32 & (2**32 - 1)
    p = x * (b & low)
    q = y * (b & low) + (p >> 32 & low)
    r = x * (b >> 32) + (q & low)
    return y * (b >> 32) + (q >> 32 & low) + (r >> 32 & low), r << 32 | p & low


def words(n, name, seed, step):
    """n random 64-bit words of a name, a seed and a step: the generator Philox4x64-10."""
    keys = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"), seed]
    a = torch.arange(1, n // 4 + 2)
    b, c, d = 0 * a, 0 * a + step, 0 * a
    for _ in range(10):
        k, m = (key - (key >> 63 << 64) for key in keys)  # torch has signed words alone
        (p, q), (r, s) = times(a, 0xD2E7470EE14C6C93), times(c, 0xCA5A826395121157)
        a, b, c, d = r ^ b ^ k, s, p ^ d ^ m, q
        keys = [keys[0] + 0x9E3779B97F4A7C15 & 2**64 - 1, keys[1] + 0xBB67AE8584CAA73B & 2**64 - 1]
    return torch.stack([a, b, c, d], 1).flatten()[:n]


def uniform(n, name, seed, step):
    """n numbers from 0 to below 1."""
    return (words(n, name, seed, step) >> 11 & 2**53 - 1).double() / 2**53'''

DROPOUT = """
SITE, STEP = 0, 0  # dropout draws by the step, and by its place in the forward pass


def dropout(x, training):
    global SITE
    if not training:
        return x
    kept = uniform(x.numel(), f"dropout:{{SITE}}", {seed}, STEP).view(x.shape) >= {p}
    SITE += 1
    return x * (kept.to(x.device) / (1 - {p}))"""


def script(lane: ExportLane) -> str:
    """Source of the script of a lane, whether it has run or not.

    Raises ValueError with a sentence for a scheme whose initial values can't be written out.
    """
    c, cuda = configured(lane.config).placed(), lane.device == "cuda"
    standard = {"import hashlib", "from statistics import NormalDist", *IMPORTS.get(c.task, ())}
    standard |= {"import math"} if c.schedule == "cosine" or not lane.is_done else set()
    model = classes(c, exact=True)
    if c.dropout:
        own = DROPOUT.format(seed=c.init_seed, p=c.dropout)
        model = [own if part in dropout(c) else part for part in model]
    on = ', device="cuda"' if cuda else ""
    started = lane.recording.started if lane.recording else None
    read = text(c, started.text if started else None, on, lane.hides_text)
    first = vocabulary(c) is None  # the model needs to know how many kinds of tokens there are
    seeds = SEEDS.format(**c.model_dump(), threads=started.threads if started else 1)
    numbers = sizes(c, vocabulary(c)) + "\n" + seeds
    start, drawn = initial_values(c)
    if cuda:
        drawn += '\nmodel.to("cuda")'
    parts = [
        "\n".join([_docstring(lane), "", head_imports(c.norm, tuple(standard)), "", numbers]),
        *(read if first else []),
        *(script_families.data(c, ".cuda()" if cuda else "") if TASKS[c.task].features else []),
        *model,
        WORDS,
        start,
        drawn,
        *([] if first else read),
        *batches(c, on),
        *(["\n".join(lines)] if (lines := profile(c)) else []),
        *learning_rate(c),
        loop(lane, "progress=1.0" in model[-1]),
    ]
    return "\n\n".join(parts) + "\n"


def _docstring(lane: ExportLane) -> str:
    c = configured(lane.config)
    label, task = PLACEMENTS.label(c.scheme), TASKS.label(c.task)
    about = (
        f"Plain PyTorch: it needs torch and {_needs(c)}, prints the loss of every 20th step, and "
        f"ends with the final loss. {_ours(lane)}{_how_exact(lane)}"
    )
    title = f'"""{label}, {task}, {c.steps} steps: run {lane.key} of NormViz.'
    return "\n\n".join([title, fill(about, 100)]) + '\n"""'


def _needs(c: RunConfig) -> str:
    images = c.task in ("digits", "digits_graph")
    return "scikit-learn, or its file digits.csv.gz," if images else "nothing else"


def _ours(lane: ExportLane) -> str:
    """What the run itself came to."""
    loss, it = lane.final_loss, lane.recording
    if loss is None or it is None:
        return ""
    final = f"{loss:.6f}" if math.isfinite(loss) else str(loss)
    chance = "" if it.started is None else f" (chance is {it.chance:.3f})"
    n, steps = len(it.steps), lane.config.steps
    so_far = f" after {n} of them" if n < steps and it.first_bad is None else ""
    return f"The run that it repeats had {final} {TASKS[lane.config.task].unit}{so_far}{chance}. "


def _how_exact(lane: ExportLane) -> str:
    if lane.device == "cuda":
        return (
            "Initial values and batches are the run's; a GPU adds in another order each time, so "
            "the losses agree up to rounding, which grows with the steps."
        )
    started = lane.recording.started if lane.recording else None
    if started is None or started.engine != "eager":
        return (
            "Initial values, batches and steps are the run's. NormViz's engine in C++ adds in another "
            "order, so its losses agree up to rounding, which grows with the steps."
        )
    return (
        "Initial values, batches and steps are the run's, and so are the losses: to the last digit "
        "on the machine and the release of torch that trained it, else up to rounding, which grows "
        "with the steps."
    )


# Batches.

COPY_KINDS = 32

BELOW = '''
def random_below(limit, n, step):
    """n random whole numbers below a limit."""
    return (uniform(n, "batch", DATA_SEED, step) * limit).long().tolist()'''

CHAIN = """
# Each of {n} states has four successors, of these probabilities; sequences start stationary.
P = torch.tensor({p}, dtype=torch.float64)
SUCCESSORS = torch.tensor([
{rows}
])
transition = torch.zeros({v}, {v}, dtype=torch.float64).scatter_(1, SUCCESSORS, P.expand({v}, 4))
START = torch.linalg.matrix_power(transition, 4096)[0].cumsum(0)[:-1]
NEXT = P.cumsum(0)[:-1]"""

MARKOV = (
    CHAIN
    + '''


def batch(step):
    """Inputs and targets [BATCH, T] of a step."""
    first, *others = uniform((T + 1) * BATCH, "batch", DATA_SEED, step).view(-1, BATCH)
    states = [torch.bucketize(first, START, right=True).tolist()]
    for row in others:
        states.append(SUCCESSORS[states[-1], torch.bucketize(row, NEXT, right=True)].tolist())
    rows = torch.tensor(states{device}).T
    return rows[:, :-1], rows[:, 1:]'''
)

MASKED = (
    CHAIN
    + '''


def batch(step):
    """Inputs and targets [BATCH, T] of a step: the loss counts the {hidden} hidden states of a row alone."""
    numbers = uniform((2 * T + 1) * BATCH, "batch", DATA_SEED, step)
    first, *others = numbers[: T * BATCH].view(-1, BATCH)
    states = [torch.bucketize(first, START, right=True).tolist()]
    for row in others:
        states.append(SUCCESSORS[states[-1], torch.bucketize(row, NEXT, right=True)].tolist())
    rows = torch.tensor(states{device}).T
    order = numbers[(T + 1) * BATCH :].view(BATCH, T).argsort(1).to(rows.device)
    hidden = torch.zeros_like(rows, dtype=torch.bool).scatter_(1, order[:, :{hidden}], True)
    return rows.masked_fill(hidden, V - 1), rows.masked_fill(~hidden, -100)'''
)

POINTERS = '''
def batch(step):
    """Inputs and targets [BATCH, T] of a step: a table, then places from which it is followed."""
    numbers = uniform(BATCH * T, "batch", DATA_SEED, step)
    table = numbers[: BATCH * V].view(BATCH, V).argsort(1)
    at = start = (numbers[BATCH * V :] * V).long().view(BATCH, T - V)
    for hop in range({hops}):
        goes_on = torch.arange(T - V) * {hops} // (T - V) >= hop
        at = torch.where(goes_on, table.gather(1, at), at)
    targets = torch.cat([torch.full_like(table, -100), at], 1)  # the table is not counted
    return torch.cat([table, start], 1){place}, targets{place}'''

COPY = '''
def batch(step):
    """Inputs and targets [BATCH, T] of a step: random tokens, then the same tokens once more."""
    tokens = random_below(V, BATCH * (T // 2), step)
    first = torch.tensor(tokens{device}).view(BATCH, T // 2)
    rows = torch.cat([first, first], 1)
    targets = rows.roll(-1, 1)
    targets[:, : T // 2 - 1] = targets[:, -1] = -100  # the loss counts the second half alone
    return rows, targets'''

CHARACTERS = '''
def batch(step):
    """Inputs and targets [BATCH, T] of a step, from random offsets."""
    starts = random_below(len(CODES) - T, BATCH, step)
    rows = torch.stack([CODES[i : i + T + 1] for i in starts])
    return rows[:, :-1], rows[:, 1:]'''

PROSE = """
# The language reference that comes with every Python, as characters.
TEXT = "\\n".join(topics[name] for name in sorted(topics))
READ = "{sha}"
if hashlib.sha256(TEXT.encode()).hexdigest() != READ:
    raise SystemExit("this Python has another text than the run read: use the Python of the run")
ALPHABET = sorted(set(TEXT))
CODES = torch.tensor([ALPHABET.index(character) for character in TEXT]{device})"""

OWN = """
# The text that the run read is not in here: give its file, as in `python script.py book.txt`.
if len(sys.argv) != 2:
    raise SystemExit("give the file of the text that the run read")
TEXT = pathlib.Path(sys.argv[1]).read_bytes().decode().removeprefix("\\ufeff")
TEXT = TEXT.replace("\\r\\n", "\\n").replace("\\r", "\\n")
{check}COUNTS = collections.Counter(TEXT)
ALPHABET = sorted(COUNTS)
if len(ALPHABET) > {symbols}:  # the rarest characters share the last symbol
    ALPHABET = sorted(sorted(COUNTS, key=lambda x: (-COUNTS[x], x))[: {symbols} - 1])
V = min(len(COUNTS), {symbols})
CODE = {{character: i for i, character in enumerate(ALPHABET)}}
CODES = torch.tensor([CODE.get(character, V - 1) for character in TEXT]{device})"""

UNREAD = """
CODES = CODES[: len(CODES) - len(CODES) // {held_out}]  # the rest is held out"""

CHECK = """if not hashlib.sha256(TEXT.encode()).hexdigest().startswith("{sha}"):
    raise SystemExit("this is not the text that the run read")
"""


def vocabulary(config: RunConfig) -> int | None:
    """Number of symbols of the config's task; None if it depends on a text."""
    if config.task in ("prose", "prose_split"):
        return len(prose()[1])
    hops = min(ENTRIES, config.seq_len // 2)
    if TASKS[config.task].classes:
        return TASKS[config.task].classes
    known = {"markov": STATES, "copy": COPY_KINDS, "masked": STATES + 1, "hops": hops}
    return known.get(config.task)


def text(config: RunConfig, sha: str | None, device: str, hides: bool = False) -> list[str]:
    """Source that reads the text of a task; `sha` is the SHA-256 of the run's text. With `hides`, and
    where a server's secret is in the hash that names the text, it can't check that it reads the same one."""
    if config.task in ("prose", "prose_split"):
        read = PROSE.format(sha=sha or prose()[2], device=device)
        return [read + UNREAD.format(held_out=HELD_OUT) * (config.task == "prose_split")]
    if config.task == "text":
        is_keyed = bool(sha) and not sha.startswith(config.text)
        check = "" if hides or is_keyed else CHECK.format(sha=config.text)
        read = OWN.format(check=check, device=device, symbols=MAX_SYMBOLS)
        return [read + UNREAD.format(held_out=HELD_OUT)]
    return []


def batches(config: RunConfig, device: str) -> list[str]:
    """Sources that make the batches; `device` is the argument that places a tensor on the device."""
    if TASKS[config.task].features:
        place = ".cuda()" if device else ""
        return [BELOW] * (config.task == "digits") + [script_families.batches(config, place)]
    if config.task == "hops":
        return [POINTERS.format(hops=HOPS, place=".cuda()" if device else "")]
    if config.task in ("markov", "masked"):
        p, rows = SUCCESSOR_P.tolist(), chain()[0].tolist()
        four = [", ".join(map(str, rows[i : i + 4])) for i in range(0, STATES, 4)]
        listed = "\n".join(f"    {row}," for row in four)
        about = {"n": STATES, "p": p, "rows": listed, "device": device}
        if config.task == "masked":
            return [MASKED.format(v="V - 1", hidden=masked_count(config.seq_len), **about)]
        return [MARKOV.format(v="V", **about)]
    rows = COPY.format(device=device) if config.task == "copy" else CHARACTERS
    return [BELOW, rows]


# Initial values: the rule of `normviz.model.init`.

WIDTH = 84
"""Characters in a row of numbers."""

MATRICES: dict[str, tuple[str, ...]] = {
    "xavier": ("(6 / (D + D)) ** 0.5", "(6 / (D + D)) ** 0.5", *("(6 / (D + HIDDEN)) ** 0.5",) * 2),
    "fairseq": (
        "(6 / (D + 3 * D)) ** 0.5",
        "(6 / (D + D)) ** 0.5",
        *("(6 / (D + HIDDEN)) ** 0.5",) * 2,
    ),
    "torch": ("(6 / (D + 3 * D)) ** 0.5", "D**-0.5", "D**-0.5", "HIDDEN**-0.5"),
    "gpt2": ("SMALL", "SMALL / (2 * L) ** 0.5") * 2,
    "gpt2_width": ("SMALL", "SMALL / (2 * L) ** 0.5") * 2,
}
"""Sizes of qkv, out, up and down: half-widths of uniform distributions, or standard deviations."""

ENDS = {
    **dict.fromkeys(("xavier", "torch"), ("1.0", "0.5", "(6 / (D + V)) ** 0.5")),
    "fairseq": ("1.0", "D**-0.5", "D**-0.5, normal=True"),
    **dict.fromkeys(("gpt2", "gpt2_width"), ("SMALL", "SMALL", "SMALL")),
}
"""Sizes of token embedding, positions and head."""

SMALL = {"gpt2": "SMALL = 0.02", "gpt2_width": "SMALL = 0.02 * (768 / D) ** 0.5"}
NAMES = ("qkv", "out", "up", "down")
OF_NORMS = {
    **dict.fromkeys(("xavier", "fairseq"), "(6 / sum(p.shape)) ** 0.5"),
    "torch": "p.shape[1] ** -0.5",
    **dict.fromkeys(SMALL, "SMALL"),
}
"""Sizes of a matrix p inside of a norm."""
GATES = {
    **dict.fromkeys(("xavier", "fairseq"), "(6 / (D + D)) ** 0.5"),
    "torch": "D**-0.5",
    **dict.fromkeys(SMALL, "SMALL"),
}
"""Size of the maps that a sublayer has besides those of its branch."""


DRAW = '''
def draw(name, values, size{normal}):
    """Every parameter draws from a generator of its own name and INIT_SEED."""
    n = values.numel()
{body}
    values.copy_(drawn.view_as(values)).mul_(size)'''
GAUSSIAN = """    u = (2 * (words(n, name, INIT_SEED, 0) >> 12 & 2**52 - 1) + 1).double() / 2**53
    drawn = torch.tensor([NormalDist().inv_cdf(x) for x in u.tolist()])"""
UNIFORM = "    drawn = 2 * uniform(n, name, INIT_SEED, 0) - 1"
EITHER = f"""{UNIFORM}
    if normal:
{GAUSSIAN.replace("    ", "        ")}"""


def initial_values(config: RunConfig) -> list[str]:
    """Sources of the function that draws, and of the lines that apply it to `model`."""
    c, gpt2 = config, config.init in SMALL
    body, default = (GAUSSIAN, "") if gpt2 else (EITHER, ", normal=False")
    function = DRAW.format(normal=default, body=body)
    if c.family != "decoder":
        drawn = script_families.initial_lines(
            c, MATRICES[c.init], ENDS[c.init], "" if gpt2 else ", normal=True"
        )
        begin = [SMALL[c.init]] if gpt2 else []
        start = [
            "model = Model()",
            "with torch.no_grad():  # norms start as the classes above make them",
        ]
        return [function, "\n" + "\n".join([*begin, *start, *drawn])]
    base, named = base_sizes(c)
    own = SCHEMES[c.scheme].embedding_std
    tokens, positions, head = ENDS[c.init]
    tokens = repr(own(base.width, base.depth)) if own else tokens
    normal = "" if gpt2 else ", normal=True"
    learned = c.positions == "learned"
    lines = [
        *named,
        *([_based(c, SMALL[c.init])] if gpt2 else []),
        "model = Model()",
        "with torch.no_grad():  # norms, gains and gates start as the classes above make them",
        f'    draw("tokens.weight", model.tokens.weight, {tokens}{normal})',
        *[f'    draw("positions.weight", model.positions.weight, {_based(c, positions)}{normal})']
        * learned,
        *[f'    draw("head.weight", model.head.weight, {_based(c, head)})'] * (c.tied == "off"),
        "    for i, block in enumerate(model.blocks):",
        '        at, ff = f"blocks.{i}.attention.branch", f"blocks.{i}.ffn.branch"',
    ]
    for name, size in zip(NAMES, MATRICES[c.init], strict=True):
        over = f"{size if size.isalpha() else f'({size})'} * M**-0.5"
        lines.append(_drawn(name, "weight", _based(c, over if named else size)))
    if maps := STREAMS[SCHEMES[c.scheme].streams].matrices:
        lines += [
            '        for branch in ("attention", "ffn"):',
            "            for name in (",
            *wrap(
                ", ".join(f'"{name}"' for name in maps),
                90,
                initial_indent=" " * 16,
                subsequent_indent=" " * 16,
            ),
            "            ):",
            '                linear = getattr(block, f"{branch}_{name}")',
            '                draw(f"blocks.{i}.{branch}.{name}.weight", linear.weight, '
            f"{GATES[c.init]})",
        ]
    if c.init == "torch":
        lines += [
            _drawn("up", "bias", _based(c, "D**-0.5")),
            _drawn("down", "bias", _based(c, "HIDDEN**-0.5")),
        ]
        lines += [f"        {_path(name)}.bias.zero_()" for name in ("qkv", "out")]
    else:
        lines += [
            f"        for linear in ({', '.join(map(_path, NAMES))}):",
            "            linear.bias.zero_()",
        ]
    lines += _gains(c)
    lines += _of_norms(c)
    if SCHEMES[c.scheme].constraint != "none":
        lines.append("model.constrain()")
    return [function, "\n" + "\n".join(lines)]


def _of_norms(c: RunConfig) -> list[str]:
    """Lines that draw the matrices inside of norms, by the names that they have in NormViz."""
    names = tuple(f".{matrix.name}" for matrix in NORMS[c.norm].drawn)
    if not names:
        return []
    streams = STREAMS[SCHEMES[c.scheme].streams].code
    return [
        "    for name, p in model.named_parameters():",
        f"        if name.endswith({names}):  # the gates of the norms".replace("'", '"'),
        '            theirs = name.replace("attention.norm_", "attention.branch.norm_")',
        *['            theirs = f"streams.{theirs}" if name.startswith("norm_") else theirs']
        * bool(streams and streams.model_norms),
        '            theirs = theirs.replace("ffn.norm_", "ffn.branch.norm_")',
        '            theirs = theirs.replace("attention_norm_", "attention.norm_")',
        f'            draw(theirs.replace("ffn_norm_", "ffn.norm_"), p, {OF_NORMS[c.init]})',
    ]


def base_sizes(c: RunConfig) -> tuple[RunConfig, list[str]]:
    """The config whose sizes decide the initial values, and lines that name those of muP's base."""
    if c.parametrisation == "standard":
        return c, []
    depth = BASE_DEPTH if c.parametrisation == "completep" else c.depth
    base = c.model_copy(update={"width": BASE_WIDTH, "depth": depth})
    about = "the base of the parametrisation, and width over its width"
    named = f"D0, HIDDEN0, L0, M = {base.width}, {base.hidden}, {base.depth}, D / {base.width}  # {about}"
    return base, [named]


def _based(c: RunConfig, size: str) -> str:
    """A size with the base's numbers instead of the model's, where the parametrisation has a base."""
    return size if c.parametrisation == "standard" else re.sub(r"\b(D|HIDDEN|L)\b", r"\g<1>0", size)


def _path(name: str) -> str:
    return f"block.{'attention' if name in ('qkv', 'out') else 'ffn'}.{name}"


def _drawn(name: str, part: str, size: str) -> str:
    prefix = "at" if name in ("qkv", "out") else "ff"
    return f'        draw(f"{{{prefix}}}.{name}.{part}", {_path(name)}.{part}, {size})'


def _gains(c: RunConfig) -> list[str]:
    """The scheme's own factors and the weight gain, applied after the chosen initialisation."""
    gain, lines = SCHEMES[c.scheme].weight_gain, list[str]()
    by_whom = " and ".join(
        [SCHEMES.label(c.scheme)] * (gain is not plain)
        + ["the weight gain"] * (c.weight_gain != 1.0)
    )
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
        by = [
            gain(Place(b, c.depth, branch), matrix) * c.weight_gain for b in range(1, c.depth + 1)
        ]
        if set(by) == {1.0}:
            continue
        alike = len(set(by)) == 1
        if not alike and by != table:
            table = by
            lines += _listed(by)
        lines.append(f"        {target}.mul_({repr(by[0]) if alike else 'factor'})")
    return [f"        # Scaled by {by_whom}:", *lines] if lines else []


def _listed(factors: list[float]) -> list[str]:
    """Lines that select a block's factor."""
    rows = wrap(", ".join(map(repr, factors)), WIDTH)
    return ["        factor = [", *(f"            {row}" for row in rows), "        ][i]"]


PROFILED = Slots(norm_main=True, skip_gain=Gain(1.0, "channel"))


def profile(config: RunConfig) -> list[str]:
    """Lines of Admin's pass over the first batch, for schemes that need it.

    Raises ValueError for a scheme whose wiring is not Admin's.
    """
    if config.family != "decoder":
        return []
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
    over = c.divided(PROFILED).branch_gain.over
    gain = "" if over == 1.0 else f"{1.0 / over!r} * "
    x = "model.tokens(inputs)" + {
        "learned": " + model.positions.weight", "sinusoidal": " + model.waves"
    }.get(c.positions, "")  # fmt: skip
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
        f"            f, skip = {gain}getattr(block, branch)(x), x * gain",
        "            omega = (skip.var().item() + f.var().item()) ** 0.5",
        f"            x = {total}",
    ]


# Training: learning rate, optimizer, and the loop that prints losses.

EPS = 1e-8


def learning_rate(c: RunConfig) -> list[str]:
    """Source of the learning rate at a step; empty if it is constant."""
    if not changes(c):
        return []
    lines = ["", "def learning_rate(step):", f"    peak = {c.lr!r}"]
    for step, lr in c.lr_edits:
        lines += [f"    if step >= {step}:  # changed while it ran", f"        peak = {lr!r}"]
    if c.warmup:
        lines += [
            f"    if step < {c.warmup}:  # warm-up",
            f"        return peak * (step + 1) / {c.warmup}",
        ]
    if c.schedule == "constant":
        return ["\n".join([*lines, "    return peak"])]
    start = f"(step - {c.warmup})" if c.warmup else "step"
    lines.append(f"    done = {start} / {max(1, c.steps - c.warmup)}")
    if c.schedule == "linear":
        return ["\n".join([*lines, "    return peak * (1.0 - done)"])]
    return ["\n".join([*lines, "    return peak * 0.5 * (1.0 + math.cos(math.pi * done))"])]


def changes(c: RunConfig) -> bool:
    """Whether the learning rate changes."""
    return bool(c.lr_edits or c.warmup or c.schedule != "constant")


MUON = """
def orthogonalised(x):
    \"\"\"A matrix with its singular values brought close to 1, by five Newton-Schulz steps.\"\"\"
    tall = x.shape[0] > x.shape[1]
    y = x.T if tall else x
    y = y / y.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = y @ y.T
        y = 3.4445 * y + (-4.7750 * gram + 2.0315 * gram @ gram) @ y
    return y.T if tall else y


@torch.no_grad()
def muon(rate):
    \"\"\"Move the matrices of the blocks; query, key, value and gate are matrices of their own.\"\"\"
    for name, p in MATRICES.items():
        MOMENTA[name].lerp_(p.grad, 0.05)
        wanted = p.grad.lerp(MOMENTA[name], 0.95)
        p.mul_(1 - rate * {decay})
        parts = {{"qkv": 3, "up": {up}}}.get(name.split(".")[-2], 1)
        for part, change in zip(p.chunk(parts), wanted.chunk(parts)):
            part.sub_(orthogonalised(change), alpha=rate * 0.2 * max(part.shape) ** 0.5)
"""
GROUPS = """KINDS = {kinds}
MATRICES = {n: p for n, p in model.blocks.named_parameters() if n.endswith(KINDS)}
ENDS = {n: p for n, p in model.named_parameters() if n in {ends}}
BLOCKS = {"blocks." + n: p for n, p in model.blocks.named_parameters() if n not in MATRICES}
GIVEN = {*ENDS, *BLOCKS, *("blocks." + n for n in MATRICES)}
REST = [p for n, p in model.named_parameters() if n not in GIVEN]"""


def has_groups(c: RunConfig) -> bool:
    """Whether the optimizer moves some parameters by other factors than others."""
    return c.optimizer == "muon" or c.decay_on != "all" or c.parametrisation != "standard"


def groups(c: RunConfig) -> list[str]:
    """Lines that sort the parameters into the groups of the optimizer; none where there is one group."""
    if not has_groups(c):
        return []
    ends = '("tokens.weight", "positions.weight", "head.weight")'
    if c.family != "decoder":
        ends = ends.replace(")", ', "inputs.weight", "class_token.weight")')
    kinds = [f".{name}.weight" for name in NAMES]
    if c.scheme in SCHEMES:
        kinds += [f"_{name}.weight" for name in STREAMS[SCHEMES[c.scheme].streams].matrices]
    kinds += {"gnn": [".value.weight"], "rnn": CELL, "lstm": CELL}.get(c.family, [])
    listed = repr(tuple(kinds)).replace("'", '"')
    lines = GROUPS.replace("{ends}", ends).replace("{kinds}", listed).splitlines()
    if c.optimizer == "muon":
        text = MUON.format(decay=repr(c.weight_decay), up=1 + (c.activation in GATED))
        lines += [
            "MOMENTA = {n: torch.zeros_like(p) for n, p in MATRICES.items()}",
            *text.splitlines(),
            "",
        ]
    m, deep, wd = c.times_base_width, c.times_base_depth, c.weight_decay
    other = wd if c.decay_on == "all" else 0.0
    sorted_ = [
        ("MATRICES.values()", 1.0 / m, wd * m, 1.0 / (m * deep)),
        ("ENDS.values()", 1.0, wd, 1.0 / m),
        ("BLOCKS.values()", 1.0, other, 1.0 / (m * deep)),
        ("REST", 1.0, other, 1.0 / m),
    ][c.optimizer == "muon" :]
    lines += ["groups = ["]
    for which, rate, decay, eps in sorted_:
        more = "" if c.optimizer == "sgd" else f', "eps": {EPS * eps!r}'
        fixed = f'"rate": {rate!r}, "lr": {c.lr * rate!r}, "weight_decay": {decay!r}{more}'
        lines.append(f'    {{"params": [*{which}], {fixed}}},')
    return [*lines, "]"]


def optimizer(c: RunConfig) -> str:
    """The expression that constructs the optimizer."""
    if has_groups(c):
        if c.optimizer == "sgd":
            return f"torch.optim.SGD(groups, {c.lr!r}, momentum={c.momentum!r})"
        return f"torch.optim.AdamW(groups, {c.lr!r}, ({c.beta1!r}, {c.beta2!r}), fused=True)"
    if c.optimizer == "sgd":
        more = f"momentum={c.momentum!r}, weight_decay={c.weight_decay!r}"
        return f"torch.optim.SGD(model.parameters(), {c.lr!r}, {more})"
    more = f"({c.beta1!r}, {c.beta2!r}), weight_decay={c.weight_decay!r}"
    return f"torch.optim.AdamW(model.parameters(), {c.lr!r}, {more}, fused=True)"


def loop(lane: ExportLane, progress: bool) -> str:
    """Source of the training loop; `progress`: the model reads the share of the run that is over."""
    c, it = configured(lane.config), lane.recording
    if c.steps == 0:
        final = 'print(f"final loss {loss.item():.6f} (at initialisation)")'
        return "\n".join(["", *_forward(c, "0", "0.0" if progress else ""), final])
    steps, note = c.steps, ""
    sort = groups(c)
    if it is not None and it.status == "diverged":
        steps = len(it.steps)
        note = f"  # of {c.steps}: then the run counted as diverged"
    share = f"step / {c.steps}" if progress else ""
    stop = ["if not math.isfinite(losses[-1]):", "    break"] if not lane.is_done else []
    printed = ["if step % 20 == 0:", '    print(f"step {step:5}   loss {losses[-1]:.6f}")']
    inside = [
        *_forward(c, "step", share),
        "losses.append(loss.item())",
        *printed,
        *stop,
        *_update(c),
    ]
    return "\n".join(
        [
            "",
            *sort,
            f"optimizer = {optimizer(c)}",
            "losses = []",
            f"for step in range({steps}):{note}",
            *(f"    {line}" for line in inside),
            "tail = losses[-max(1, len(losses) // 10) :]  # the last tenth",
            'print(f"final loss {sum(tail) / len(tail):.6f} (mean of the last {len(tail)})")',
        ]
    )


def _forward(c: RunConfig, step: str, share: str) -> list[str]:
    sites = [f"SITE, STEP = 0, {step}"] if c.dropout else []
    more = f", {share}" if share else ""
    if c.zloss:
        return [
            *sites,
            f"inputs, targets = batch({step})",
            f"logits, targets = model(inputs{more}).flatten(0, 1), targets.flatten()",
            "loss = F.cross_entropy(logits, targets)",
            f"z = {c.zloss!r} * torch.logsumexp(logits[targets != -100], -1).square().mean()",
            "loss = loss + (z - z.detach())  # its gradient has that of the z-loss",
        ]
    return [
        *sites,
        f"inputs, targets = batch({step})",
        f"loss = F.cross_entropy(model(inputs{more}).flatten(0, 1), targets.flatten())",
    ]


def _update(c: RunConfig) -> list[str]:
    lines = [f"{'model' if c.optimizer == 'muon' else 'optimizer'}.zero_grad()", "loss.backward()"]
    if c.clip is not None:
        lines += [
            "gradients = [p.grad for p in model.parameters()]",
            "norm = torch.cat([g.flatten() for g in gradients]).norm().item()",
            f"if norm > {c.clip!r}:",
            "    for g in gradients:",
            f"        g.mul_({c.clip!r} / norm)",
        ]
    if changes(c) and has_groups(c):
        lines += [
            "for g in optimizer.param_groups:",
            '    g["lr"] = learning_rate(step) * g["rate"]',
        ]
    elif changes(c):
        lines.append('optimizer.param_groups[0]["lr"] = learning_rate(step)')
    if c.optimizer == "muon":
        lines.append(f"muon({'learning_rate(step)' if changes(c) else repr(c.lr)})")
    bound = c.scheme in SCHEMES and SCHEMES[c.scheme].constraint != "none"
    constrain = ["model.constrain()"] if bound else []
    return [*lines, "optimizer.step()", *constrain]
