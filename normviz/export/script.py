"""A lane as one short script in plain PyTorch that gives the same losses.

It draws the same initial values, makes the same batches and takes the same steps with the same
operations. On one machine with one number of threads its losses equal the run's bit for bit. The
model is the pasteable one of `normviz.explain`.
"""

from __future__ import annotations

import math
from textwrap import fill

from ..catalog import SCHEMES, TASKS
from ..explain import classes, head_imports, sizes
from .lane import ExportLane
from .script_data import IMPORTS, batches, text, vocabulary
from .script_init import initial_values, profile
from .script_train import learning_rate, loop

SEEDS = """INIT_SEED, DATA_SEED, BATCH = {init_seed}, {data_seed}, {batch}  # sequences a step
torch.set_num_threads({threads})  # another number of threads rounds differently"""


def script(lane: ExportLane) -> str:
    """Source of the script of a lane, whether it has run or not.

    Raises ValueError with a sentence for a scheme whose initial values can't be written out.
    """
    c, cuda = lane.config.placed(), lane.facts.device == "cuda"
    standard = {"import hashlib", *IMPORTS[c.task]}
    standard |= {"import math"} if c.schedule == "cosine" or not lane.facts.is_done else set()
    model = classes(c, exact=True)
    on = ', device="cuda"' if cuda else ""
    read = text(c, lane.facts.text, on, lane.hides_text)
    first = vocabulary(c) is None  # the model needs the number of symbols
    seeds = SEEDS.format(**c.model_dump(), threads=lane.facts.threads or 1)
    numbers = sizes(c, vocabulary(c)) + "\n" + seeds
    start, drawn = initial_values(c)
    if cuda:
        drawn += '\nmodel.to("cuda")'
    parts = [
        "\n".join([_docstring(lane), "", head_imports(c.norm, tuple(standard)), "", numbers]),
        *(read if first else []),
        *model,
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
    c = lane.config
    label, task = SCHEMES.label(c.scheme), TASKS.label(c.task)
    about = (
        "Plain PyTorch: it needs torch and nothing else, prints the loss of every 20th step, and "
        f"ends with the final loss. {_ours(lane)}{_how_exact(lane)}"
    )
    title = f'"""{label}, {task}, {c.steps} steps: run {c.key} of NormViz.'
    return "\n\n".join([title, fill(about, 100)]) + '\n"""'


def _ours(lane: ExportLane) -> str:
    """The result of the run itself."""
    loss, facts = lane.final_loss, lane.facts
    if loss is None:
        return ""
    told = f"{loss:.6f}" if math.isfinite(loss) else str(loss)
    chance = "" if facts.chance is None else f" (chance is {facts.chance:.3f})"
    n, steps = len(lane.recorded.step), lane.config.steps
    so_far = f" after {n} of them" if n < steps and facts.bad_step is None else ""
    return f"The run that it repeats had {told} nats per token{so_far}{chance}. "


def _how_exact(lane: ExportLane) -> str:
    if lane.facts.device == "cuda":
        return (
            "Initial values and batches are the run's; a GPU adds in another order each time, so "
            "the losses agree up to rounding, which grows with the steps."
        )
    return (
        "Initial values, batches and steps are the run's, and so are the losses: to the last digit "
        "on the machine and the release of torch that trained it, else up to rounding, which grows "
        "with the steps."
    )
