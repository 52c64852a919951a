"""A lane as one script in plain PyTorch that gives the same losses.

`script` puts the parts together: the model of `normviz.lessons.anatomy`, and quotations of the functions that
draw, make batches and train (`model.draws`, `model.batches`, `training.plain`). On one machine with one
number of threads the script's losses equal the run's bit for bit.
"""

from __future__ import annotations

import math
import re
from textwrap import fill, wrap

from ..catalog import FAMILIES, INITS, NORMS, PLACEMENTS, SCHEMES, STREAMS, TASKS
from ..catalog.choices import GATED
from ..catalog.inits import MATRICES, OF_NORMS
from ..catalog.scheme import BRANCHES, Gain, Matrix, Place, Slots, plain
from ..catalog.tasks import COPIED, ENTRIES
from ..config import RunConfig, engine_of
from ..lessons.anatomy import classes, sizes
from ..lessons.anatomy.code import dropout, imports
from ..lessons.anatomy.quote import Quotation
from ..limits import MAX_SYMBOLS
from ..model.corpora import STATES, prose
from ..model.graphs import karate
from ..observed import configured
from ..runs.lane import Lane

PLAIN = "training/plain.py"
IMPORTS = {
    "RunConfig": "from types import SimpleNamespace as RunConfig",
    "collections": "import collections",
    "hashlib": "import hashlib",
    "pathlib": "import pathlib",
    "sys": "import sys",
}
"""What the script's own lines use, with the lines that import it."""


def script(lane: Lane) -> str:
    """Source of the script of a lane, whether it has run or not.

    Raises ValueError with a sentence for a scheme whose initial values can't be written out.
    """
    c = configured(lane.config).placed()
    place = ".cuda()" if lane.is_on_gpu else ""
    model = [part.strip("\n") for part in classes(c, exact=True) if part not in dropout(c)]
    quotation = Quotation({"RunConfig", "digits"})
    quote = quotation.quote
    sections = {
        "Random numbers: functions of a name, a seed and a step.": [
            quote("model/draws.py", "generator", "uniform"),
            *(
                [quote(PLAIN, "Dropout"), f"dropout = Dropout({c.dropout!r}, INIT_SEED)"]
                * bool(c.dropout)
            ),
        ],
        "The task.": [
            *_data(c, quotation, lane),
            _batch(c, place, rises="progress=1.0" in model[-1]),
        ],
        "Initial values.": [
            quote(PLAIN, "normal"),
            quote(PLAIN, "initialise", *["profile"] * is_profiled(c)),
            _draws(c),
            _build(c, place),
        ],
        "Training.": [
            *([quote("training/schedule.py", "lr_at")] * changes(c)),
            _rate(c),
            quote(PLAIN, *_quoted(c)),
            *([quote("model/constraint.py", "clip_qk")] * (c.qk_clip is not None)),
            _main(lane),
        ],
    }
    titled = (part for title, parts in sections.items() for part in (f"# {title}", *parts))
    body = "\n\n\n".join([*model, *titled])
    text = f"{_settings(lane)}\n\n\n{body}\n"
    own = {line for word, line in IMPORTS.items() if re.search(rf"\b{word}\b[.(]", text)}
    lines = own | quotation.imports | set(imports(c.norm).splitlines())
    return "\n\n".join([_docstring(lane), _imports(lines), text])


def _imports(lines: set[str]) -> str:
    """Import lines in order, those of a module as one."""
    names = dict[str, list[str]]()
    for line in sorted(lines - {""}):
        module, _, name = line.rpartition(" import ")
        names.setdefault(module or line, []).append(name)
    merged = [
        line if line.startswith("import ") else f"{line} import {', '.join(several)}"
        for line, several in names.items()
    ]
    merged.sort(key=lambda line: (not line.startswith("import "), line))
    outside = [line for line in merged if line.split()[1].split(".")[0] in ("numpy", "torch")]
    return "\n".join([*(line for line in merged if line not in outside), "", *outside])


def _docstring(lane: Lane) -> str:
    c = configured(lane.config)
    label, task = PLACEMENTS.label(c.scheme), TASKS.label(c.task)
    about = (
        f"Plain PyTorch: it needs torch, numpy and {_needs(c)}, prints the loss of every 20th step, and "
        f"ends with the final loss. {_outcome(lane)}{_how_exact(lane)}"
    )
    title = f'"""{label}, {task}, {c.steps} steps: run {lane.key} of NormViz.'
    return "\n\n".join([title, fill(about, 100)]) + '\n"""'


def _needs(c: RunConfig) -> str:
    images = c.task in ("digits", "digits_graph")
    return "scikit-learn (or its file digits.csv.gz)" if images else "nothing else"


def _outcome(lane: Lane) -> str:
    """What the run itself came to."""
    loss = lane.final_loss
    if loss is None:
        return ""
    recording = lane.recording
    final = f"{loss:.6f}" if math.isfinite(loss) else str(loss)
    chance = "" if recording.started is None else f" (chance is {recording.chance:.3f})"
    n, steps = len(recording.steps), lane.config.steps
    so_far = f" after {n} of them" if n < steps and recording.first_bad is None else ""
    return f"The run that it repeats had {final} {TASKS[lane.config.task].unit}{so_far}{chance}. "


def _how_exact(lane: Lane) -> str:
    if lane.is_on_gpu:
        return (
            "Initial values and batches are the run's; a GPU may add in another order, so "
            "the losses agree up to rounding, which grows with the steps."
        )
    started = lane.started
    if (started.engine if started else engine_of(configured(lane.config))) == "tape":
        return (
            "Initial values, batches and steps are the run's. NormViz's engine in C++ adds in another "
            "order, so its losses agree up to rounding, which grows with the steps."
        )
    return (
        "Initial values, batches and steps are the run's, and so are the losses: to the last digit "
        "on the machine and the release of torch that trained it, else up to rounding, which grows "
        "with the steps."
    )


def _settings(lane: Lane) -> str:
    c = configured(lane.config).placed()
    started = lane.started
    threads = started.threads if started else 1
    examples = "images" if c.task == "digits" else "sequences"
    return "\n".join(
        [
            sizes(c, vocabulary(c)),
            f"INIT_SEED, DATA_SEED = {c.init_seed}, {c.data_seed}",
            *([] if TASKS[c.task].nodes else [f"BATCH = {c.batch}  # {examples} a step"]),
            *([_config(c)] if changes(c) or has_groups(c) else []),
            f"torch.set_num_threads({threads})  # another number of threads rounds differently",
        ]
    )


def _config(c: RunConfig) -> str:
    """The settings that `lr_at` and `groups` read."""
    names = ("steps", "lr", "lr_edits", "warmup", "schedule") if changes(c) else ()
    if has_groups(c):
        names += ("weight_decay", "decay_on", "times_base_width", "times_base_depth")
    values = ", ".join(f"{name}={getattr(c, name)!r}" for name in names).replace("'", '"')
    return "\n".join(["config = RunConfig(", *_rows(values), ")"])


def _rows(text: str) -> list[str]:
    """Indented lines of numbers or names."""
    return wrap(text, 96, initial_indent="    ", subsequent_indent="    ")


# The task.

PROSE = """
CODES, _, READ = prose()
if READ != "{sha}":
    raise SystemExit("this Python has another text than the run read: use the Python of the run")"""

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
CODES = np.array([CODE.get(character, V - 1) for character in TEXT])"""

CHECK = """if not hashlib.sha256(TEXT.encode()).hexdigest().startswith("{sha}"):
    raise SystemExit("this is not the text that the run read")
"""

DIGITS = '''def digits():
    """Pixels [1797, 64] and labels [1797]: of scikit-learn's file digits.csv.gz, as in
    `python script.py digits.csv.gz`, else of the installed package."""
    if len(sys.argv) == 2:
        table = np.loadtxt(sys.argv[1], delimiter=",").astype(np.int64)
        return table[:, :64], table[:, 64]
    from sklearn.datasets import load_digits

    return tuple(x.astype(np.int64) for x in load_digits(return_X_y=True))'''

NODES = """
A = torch.from_numpy(GRAPH.weights())
SHOWN = shown(GRAPH.labels, DATA_SEED, GRAPH.shown)"""

PIECES = "pieces({rng}, CODES, BATCH, T)"
GRAPH = "GRAPH.features, np.where(SHOWN, GRAPH.labels, IGNORED)"
BATCHES = {
    "markov": "markov({rng}, BATCH, T)",
    "masked": "masked({rng}, BATCH, T)",
    "hops": "hops({rng}, BATCH, T, V)",
    "copy": "copied({rng}, BATCH, T, V)",
    "prose": PIECES,
    "prose_split": PIECES,
    "text": PIECES,
    "digits": "examples({rng}, *standardised(), BATCH)",
    "karate": GRAPH,
    "digits_graph": GRAPH,
}
"""What makes inputs and targets of each task."""


def vocabulary(config: RunConfig) -> int | None:
    """Number of symbols of the config's task; None if it depends on a text."""
    if config.task in ("prose", "prose_split"):
        return len(prose()[1])
    if TASKS[config.task].classes:
        return TASKS[config.task].classes
    hops = min(ENTRIES, config.seq_len // 2)
    return {"markov": STATES, "copy": COPIED, "masked": STATES + 1, "hops": hops}.get(config.task)


def _data(c: RunConfig, quotation: Quotation, lane: Lane) -> list[str]:
    """Sources of what the batches are made from, and of the function that makes them."""
    quote = quotation.quote
    if TASKS[c.task].nodes:
        own = [quote("model/batches.py", "IGNORED", "shown")]
        if c.task == "karate":
            return [*own, quote("model/graphs.py", "graph_of"), _club() + NODES]
        graph = "GRAPH = digits_graph()"
        return [*own, DIGITS, quote("model/graphs.py", "digits_graph"), graph + NODES]
    read = _text(c, quotation, lane)
    if c.task == "digits":
        read = [DIGITS, quote("model/images.py", "standardised")]
    return [*read, quote("model/batches.py", BATCHES[c.task].partition("(")[0])]


def _club() -> str:
    """Source of the graph of the karate club."""
    edges = " ".join(f"{a},{b}" for a, b in karate().edges.tolist())
    labels = " ".join(map(str, karate().labels.tolist()))
    lines = [
        "# Zachary's karate club: friendships, and the side of each member.",
        'GRAPH = graph_of("""',
        *(*_rows(edges), "", *_rows(labels)),
        '""")',
    ]
    return "\n".join(lines)


def _text(c: RunConfig, quotation: Quotation, lane: Lane) -> list[str]:
    """Sources that read the text of a task; none for other tasks."""
    started = lane.started
    if c.task == "text":
        read = OWN.format(check=CHECK.format(sha=c.text), symbols=MAX_SYMBOLS)
    elif c.task in ("prose", "prose_split"):
        read = PROSE.format(sha=(started and started.text) or prose()[2])
    else:
        return []
    source = "" if c.task == "text" else quotation.quote("model/corpora.py", "prose")
    if c.task != "prose":
        source += "\n\n\n" + quotation.quote("model/characters.py", "trained")
        read += "\nCODES = trained(CODES)  # the rest is held out"
    return [source.strip(), read.strip()]


def _batch(c: RunConfig, place: str, rises: bool) -> str:
    """Source of the batch of a step; `place` moves a tensor to the device, `rises` asks for the progress."""
    share = f", step / {max(1, c.steps)}" if rises else ""
    about = "Inputs, the progress of training, and targets" if rises else "Inputs and targets"
    made = BATCHES[c.task].format(rng='generator("batch", DATA_SEED, step)')
    lines = [
        "def batch(step):",
        f'    """{about} of a step."""',
        *["    dropout.begin(step)"] * bool(c.dropout),
        f"    inputs, targets = {made}",
        f"    return torch.from_numpy(inputs){place}{share}, torch.from_numpy(targets){place}",
    ]
    return "\n".join(lines)


# Initial values.

MAPS: dict[str | None, tuple[tuple[str, str, str, Matrix], ...]] = {
    "attention": (
        ("attention.qkv", "[: 2 * D]", "qkv", "query_key"), ("attention.qkv", "[2 * D :]", "qkv", "value"),
        ("attention.out", "", "out", "out"),
    ),
    "first": (("first.up", "", "up", "up"), ("first.down", "", "down", "down")),
    "messages": (("messages.value", "", "qkv", "value"), ("messages.out", "", "out", "out")),
    "ffn": (("ffn.up", "", "up", "up"), ("ffn.down", "", "down", "down")),
}  # fmt: skip
"""The maps of each branch: name in the code shown, which part of it, its role, and its matrix."""


GATE: tuple[str, str, str, Matrix] = ("attention.gate", "", "gate", "query_key")


def _maps(c: RunConfig) -> tuple[tuple[str, str, str, Matrix], ...]:
    return MAPS[FAMILIES[c.family].first] + (GATE,) * (c.attn_gate != "off") + MAPS["ffn"]


def roles(c: RunConfig) -> dict[str, str]:
    """How the names of drawn parameters end in the code shown, and the role of each."""
    endings = dict[str, str]()
    reads = "inputs" if TASKS[c.task].features else "tokens"
    endings[f"{reads}.weight"] = f"{reads}.weight"
    if c.family == "vit":
        endings["class_token.weight"] = "tokens.weight"
    if c.positions == "learned" and "positions" not in FAMILIES[c.family].lacks:
        endings["positions.weight"] = "positions.weight"
    if c.tied == "off":
        endings["head.weight"] = "head.weight"
    if c.scheme not in SCHEMES:
        endings |= dict.fromkeys(("hidden.weight", "input.weight"), "cell.weight")
        if "cell.bias" in INITS[c.init].draws:
            endings |= {f"blocks.{i}.bias": "cell.bias" for i in range(c.depth)}
    else:
        maps = [(name.split(".")[1], role) for name, _, role, _ in _maps(c)]
        endings |= {f"{name}.weight": f"{role}.weight" for name, role in maps}
        endings |= {f"{name}.bias": f"{role}.bias" for name, role in maps}
        for gate in STREAMS[SCHEMES[c.scheme].streams].matrices:
            endings |= {f"{branch}_{gate}.weight": "gate.weight" for branch in BRANCHES}
    if reads == "inputs":
        endings["inputs.bias"] = "inputs.bias"
    return endings


def _draws(c: RunConfig) -> str:
    """Source of the table of what is drawn."""
    lines = ["# What is drawn for the names that end so; None is 0.", "DRAWS = {"]
    if c.parametrisation != "standard":
        sizes = f"{c.base.width}, {c.base.hidden}, {c.base.depth}, D / {c.base.width}"
        about = "the base of the parametrisation, and width over its width"
        lines.insert(0, f"D0, HIDDEN0, L0, M = {sizes}  # {about}")
    lines += [f'    "{end}": {_draw(c, role)},' for end, role in roles(c).items()]
    return "\n".join([*lines, "}"])


def _draw(c: RunConfig, role: str) -> str:
    """The expression of what is drawn for a role, in the names of the script."""
    text = INITS[c.init].draws.get("tokens.weight" if role == "inputs.weight" else role, "None")
    own = SCHEMES[c.scheme].embedding_std if c.scheme in SCHEMES else None
    if own and role in ("tokens.weight", "inputs.weight"):
        text = f"Draw({own(c.base.width, c.base.depth)!r}, normal=True)"
    if role == "inputs.weight":
        is_cut = c.family == "vit" or FAMILIES[c.family].is_recurrent
        text = _times(text, f"{TASKS[c.task].features // (c.seq_len if is_cut else 1)}**-0.5")
    if c.parametrisation == "standard":
        return text
    text = re.sub(r"\b(D|HIDDEN|L)\b", r"\g<1>0", text)
    return _times(text, "M**-0.5") if role in MATRICES else text


def _times(draw: str, factor: str) -> str:
    """The expression of a draw with its size multiplied."""
    return re.sub(r"(, normal=True)?\)$", rf" * {factor}\1)", draw)


def _build(c: RunConfig, place: str) -> str:
    """Source of the function that makes the model."""
    bound = c.scheme in SCHEMES and SCHEMES[c.scheme].constraint != "none"
    lines = [
        "model = Model()",
        "initialise(model, DRAWS, INIT_SEED)",
        *_of_norms(c),
        *_gains(c),
        *["model.constrain()"] * bound,
        *["model.cuda()"] * bool(place),
        *_profile(c),
        "return model, batch(0)[0]",
    ]
    return "\n".join(
        [
            "@torch.no_grad()",
            "def build():",
            '    """The model before its first step, and its input: for `normviz inspect FILE:build`."""',
            *(f"    {line}" for line in lines),
        ]
    )


def _of_norms(c: RunConfig) -> list[str]:
    """Lines that draw the matrices inside of norms."""
    ends = ", ".join(f'".{matrix.name}"' for matrix in NORMS[c.norm].drawn)
    if not ends:
        return []
    return [
        "for name, p in model.named_parameters():",
        f"    if name.endswith(({ends})):  # inside of a norm",
        f"        draw_into(p, {_draw(c, OF_NORMS).replace('shape', 'p.shape')}, key_of(name), INIT_SEED)",
    ]


def _gains(c: RunConfig) -> list[str]:
    """Lines that apply the scheme's own factors and the weight gain."""
    if c.scheme not in SCHEMES:
        gain = {f"{name}.weight": [c.weight_gain] for name in ("hidden", "input")}
    else:
        own = SCHEMES[c.scheme].weight_gain
        gain = {
            f"{name}.weight{part}": [
                own(Place(b, c.depth, "ffn" if name.startswith("ffn.") else "attention"), matrix)
                * c.weight_gain
                for b in range(1, c.depth + 1)
            ]
            for name, part, _, matrix in _maps(c)
        }
    lines, table = list[str](), list[float]()
    for target, factors in gain.items():
        if set(factors) == {1.0}:
            continue
        alike = len(set(factors)) == 1
        if not alike and factors != table:
            table = factors
            lines += ["factor = [", *_rows(", ".join(map(repr, factors))), "][i]"]
        lines.append(f"block.{target}.mul_({factors[0] if alike else 'factor'})")
    if not lines:
        return []
    own = "model.blocks" if c.loops == 1 else f"model.blocks[: {c.depth // c.loops}]"
    blocks = f"i, block in enumerate({own})" if table else f"block in {own}"
    return [
        f"for {blocks}:  # scaled by {_by_whom(c)}",
        *(f"    {line}" for line in lines),
    ]


def _by_whom(c: RunConfig) -> str:
    own = c.scheme in SCHEMES and SCHEMES[c.scheme].weight_gain is not plain
    return " and ".join(
        [PLACEMENTS.label(c.scheme)] * own + ["the weight gain"] * (c.weight_gain != 1.0)
    )


PROFILED = Slots(norm_main=True, skip_gain=Gain(1.0, "channel"))


def is_profiled(c: RunConfig) -> bool:
    """Whether a pass over the first batch sets gains.

    Raises ValueError for a model that `training.plain.profile` does not know.
    """
    if c.scheme not in SCHEMES or not SCHEMES[c.scheme].profiled:
        return False
    scheme = SCHEMES[c.scheme]
    places = (Place(b, c.depth, f) for b in range(1, c.depth + 1) for f in BRANCHES)
    alike = all(scheme.slots(place) == PROFILED for place in places)
    if not alike or scheme.streams != "one" or scheme.embed_norm or c.family != "decoder":
        raise ValueError(
            f"{scheme.label} starts from a forward pass that a script of its own does not know how "
            "to write: only Admin's wiring is known, in decoders"
        )
    return True


def _profile(c: RunConfig) -> list[str]:
    """Lines of the pass over the first batch, for schemes that need it."""
    if not is_profiled(c):
        return []
    x = "model.tokens(batch(0)[0])" + {
        "learned": " + model.positions.weight", "sinusoidal": " + model.waves"
    }.get(c.positions, "")  # fmt: skip
    over = c.divided(PROFILED).branch_gain.over
    gain = "" if over == 1.0 else f", {1.0 / over!r}"
    return [f"profile(model, {f'dropout({x}, True)' if c.dropout else x}{gain})"]


# Training.


def changes(c: RunConfig) -> bool:
    """Whether the learning rate changes."""
    return bool(c.lr_edits or c.warmup or c.schedule != "constant")


def has_groups(c: RunConfig) -> bool:
    """Whether the optimizer moves some parameters by other factors than others."""
    return c.optimizer == "muon" or c.decay_on != "all" or c.parametrisation != "standard"


def _quoted(c: RunConfig) -> list[str]:
    """Names of what the training needs."""
    return [
        *["groups", "kinds"] * has_groups(c),
        *["Muon"] * (c.optimizer == "muon"),
        *["clip"] * (c.clip is not None),
        *["loss_with_z"] * bool(c.zloss),
        "train",
    ]


def _rate(c: RunConfig) -> str:
    """Source of the learning rate of a step."""
    value = "lr_at(config, step)" if changes(c) else repr(c.lr)
    return f"def learning_rate(step):\n    return {value}"


def _optimizers(c: RunConfig) -> list[str]:
    """Lines that make the optimizers."""
    muon = c.optimizer == "muon"
    lines = ["of_kind = kinds(model, DRAWS)"] if has_groups(c) else []
    params, decay = "model.parameters()", f", weight_decay={c.weight_decay!r}"
    if muon:
        parts = {"qkv": 3, "up": 1 + (c.activation in GATED)}
        listed = repr(parts).replace("'", '"')
        lines.append(f"muon = Muon(of_kind.pop((True, True, False)), {listed}{decay})")
    if has_groups(c):
        params, decay = "groups(of_kind, config)", ""
    if c.optimizer == "sgd":
        made = f"torch.optim.SGD({params}, {c.lr!r}, momentum={c.momentum!r}{decay})"
    else:
        betas = f"({c.beta1!r}, {c.beta2!r})"
        made = f"torch.optim.AdamW({params}, {c.lr!r}, {betas}{decay}, fused=True)"
    lines.append(f"optimizers = [{'muon, ' * muon}{made}]")
    if c.clip is not None:
        lines.append(f"optimizers[0].register_step_pre_hook(lambda *_: clip(model, {c.clip!r}))")
    if c.scheme in SCHEMES and SCHEMES[c.scheme].constraint != "none":
        lines.append("optimizers[-1].register_step_post_hook(lambda *_: model.constrain())")
    if c.qk_clip is not None:
        lines += [
            "attentions = [block.attention for block in model.blocks]",
            f"optimizers[-1].register_step_post_hook(lambda *_: clip_qk(attentions, {c.qk_clip!r}))",
        ]
    return lines


def _main(lane: Lane) -> str:
    """Source of what runs when the file is run, and not where it is read by something else."""
    c = configured(lane.config).placed()
    steps, note = max(1, c.steps), ""
    if lane.recordings and lane.recording.status == "diverged":
        steps, note = (
            len(lane.recording.steps),
            f"  # of {c.steps}: then the run counted as diverged",
        )
    loss = f", lambda *x: loss_with_z(*x, {c.zloss!r})" if c.zloss else ""
    report = [
        "tail = losses[-max(1, len(losses) // 10) :]  # the last tenth",
        'print(f"final loss {sum(tail) / len(tail):.6f} (mean of the last {len(tail)})")',
    ]
    if c.steps == 0:
        report = ['print(f"final loss {losses[0]:.6f} (at initialisation)")']
    lines = [
        "model, _ = build()",
        *_optimizers(c),
        f"losses = train(model, optimizers, batch, learning_rate, {steps}{loss}){note}",
        *report,
    ]
    return "\n".join(['if __name__ == "__main__":', *(f"    {line}" for line in lines)])
