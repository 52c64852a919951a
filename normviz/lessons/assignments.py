"""Assignments: what a teacher sends as a link, and a student does alone. Torch-free.

An experiment asks for predictions of its runs before any is shown. A bug hunt gives code with one planted bug
of the doctor's list. What the doctor says of it stands here, because a page runs no code; a test asks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..catalog import SCHEMES
from ..catalog.registry import Registry
from ..config import RunConfig
from ..runs import Recording
from .presets import PRESETS, Lanes

OUTCOMES = ("learns", "learns slower", "fails")
"""What is predicted of a run, and measured."""
RULE = (
    "A run *learns* if its loss comes at least half of the way from chance to the floor within its steps. It "
    "*learns slower* if it gets below chance, or still falls, and comes less far. It *fails* if it diverges, "
    "or ends at chance or above."
)


def outcome(recording: Recording) -> str:
    """Which of OUTCOMES a run had, by its verdict."""
    kind = recording.verdict.kind
    if kind in ("learned", "solved"):
        return OUTCOMES[0]
    slower = ("learned little", "learned in part", "still falling", "not settled")
    return OUTCOMES[1] if kind in slower else OUTCOMES[2]


@dataclass(frozen=True)
class Experiment:
    """Runs to predict, to train and to explain.

    task      what is trained and what is asked of it, without results
    groups    the lanes of each duel
    question  answered in words after the runs
    credit    where the idea is from, as Markdown
    """

    key: str
    label: str
    sentence: str
    task: str
    groups: Callable[[], tuple[Lanes, ...]]
    question: str
    credit: str

    @property
    def lanes(self) -> dict[str, RunConfig]:
        """The settings of each run by its name."""
        return {title(lane): lane for group in self.groups() for lane in group}


def title(config: RunConfig) -> str:
    """The name of a run among those of an experiment."""
    return f"{SCHEMES.label(config.scheme)}, learning rate {f'{config.lr:f}'.rstrip('0')}"


@dataclass(frozen=True)
class BugHunt:
    """Training code with one planted bug about norms.

    symptom      what its author sees
    code         the code without the bug; `right` is the part in which `wrong` plants it
    finding      the name of the doctor's finding, one of FINDINGS
    says         the doctor's own sentence
    """

    key: str
    label: str
    sentence: str
    code: str
    right: str
    wrong: str
    finding: str
    says: str

    @property
    def file(self) -> str:
        """The name of the file with the bug."""
        return f"{self.key}.py"

    @property
    def planted(self) -> str:
        """The code with the bug."""
        return self.code.replace(self.right, self.wrong)


FINDINGS = {
    "stream overwritten": "the skip path carries the norm's result instead of the stream",
    "norm unused": "a norm is not called, or nothing reads its result",
    "norm shared": "one norm serves several blocks",
    "norm called twice": "one norm serves two places of a block",
    "two norms in a row": "a norm of a norm's result",
    "norm of another size": "the result's root mean square is not 1",
    "no norm": "the result grows or falls with the size of the input",
    "norm over positions": "the statistics of a causal model read other positions or other sequences",
    "final norm missing": "nothing normalises what leaves the last block of a Pre-LN",
    "squares overflow": "the squares are too large for float16",
    "eps too small": "a token of zeros gives NaN, or an endless gradient",
}
"""Names of the doctor's findings that a hunt offers, each with what it means."""

# The experiments.

RATES = (5e-5, 3e-3, 3e-2)
SCHEMES_TO_TRY = ("none", "post", "pre")


def three_ablations() -> tuple[Lanes, ...]:
    """A block of today without a norm, as Post-LN and as Pre-LN, each at three learning rates."""
    block = PRESETS["today"].lanes()[0].replace(qk_norm="off", init="torch")
    return tuple(
        tuple(block.replace(scheme=scheme, lr=rate) for rate in RATES) for scheme in SCHEMES_TO_TRY
    )


# The code of the hunts.

START = """\
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, BLOCKS, SYMBOLS = 64, 4, 4, 50


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


def ffn():
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
"""
BLOCK = """

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.ffn = Attention(), ffn()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        x = x + self.ffn(self.norm2(x))
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(SYMBOLS, WIDTH), nn.Linear(WIDTH, SYMBOLS)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.final_norm = nn.LayerNorm(WIDTH)
"""
END = """
    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x))


def build():
    torch.manual_seed(0)
    return Model()


if __name__ == "__main__":
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(100):
        tokens = (torch.randint(SYMBOLS, (8, 1)) + torch.arange(17)) % SYMBOLS  # it counts
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, f"{loss.item():.3f}")
"""
RMSNORM = """

class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        mean_square = x.pow(2).mean(-1, keepdim=True)
        return self.scale * x * torch.rsqrt(mean_square + 1e-6)
"""
OWN_NORM = BLOCK.replace("nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)", "RMSNorm(), RMSNorm()")

ASSIGNMENTS: Registry[Experiment | BugHunt] = Registry(
    "assignment",
    (
        Experiment(
            "ablations",
            "Three ablations",
            "No norm, Post-LN and Pre-LN at three learning rates: predict, train, explain, hand in a file.",
            "The model is a transformer of {0.depth} blocks with RMSNorm, SwiGLU and RoPE that learns a "
            "synthetic language in {0.steps} steps of AdamW, without warm-up. You train it without any norm, "
            "with the norm after each sum (Post-LN) and before each branch (Pre-LN), each at three learning "
            "rates. All nine see the same batches, and what they share starts from the same weights.",
            three_ablations,
            "At the highest rate, what does the norm, its lack or its place do to the runs that fail? Name "
            "one number or chart of a duel that shows it.",
            "Inspired by assignment 1 of Stanford's course CS336, which asks for a model without RMSNorm and "
            "for one with post-norm ([its code](https://github.com/stanford-cs336/assignment1-basics)).",
        ),
        BugHunt(
            "skip_path",
            "Bug hunt: the skip path",
            "A Pre-LN whose block forgets how large its input was.",
            START + BLOCK + END,
            """\
        x = x + self.attention(self.norm1(x))
        x = x + self.ffn(self.norm2(x))
""",
            """\
        x = self.norm1(x)
        x = x + self.attention(x)
        x = self.norm2(x)
        x = x + self.ffn(x)
""",
            "stream overwritten",
            "blocks.0.norm1 (skip_path.py:30): the skip path starts after the norm, N(x) + A(N(x)): was "
            "x + f(norm(x)) meant? (a stream twice as large leaves the block 1.00 times as large) (and at 7 "
            "more places); keep the stream under its own name: x = x + f(norm(x))",
        ),
        BugHunt(
            "by_hand_norm",
            "Bug hunt: an RMSNorm by hand",
            "A norm of its own, and a stream that is not what it should be.",
            START + RMSNORM + OWN_NORM + END,
            "x * torch.rsqrt(mean_square + 1e-6)",
            "x / (mean_square + 1e-6)",
            "no norm",
            "blocks.0.norm1 (by_hand_norm.py:30): looks like a norm, but its output falls as 1/|x|: its root "
            "is forgotten (and at 7 more places); divide by the root: x * rsqrt(x.pow(2).mean(-1, "
            "keepdim=True) + eps)",
        ),
        BugHunt(
            "few_scales",
            "Bug hunt: too few parameters",
            "The model trains, and has fewer parameters than its author counted.",
            START + BLOCK + END,
            """\
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
""",
            """\
    def __init__(self, norm1=nn.LayerNorm(WIDTH), norm2=nn.LayerNorm(WIDTH)):
        super().__init__()
        self.norm1, self.norm2 = norm1, norm2
""",
            "norm shared",
            "blocks.0.norm1: one norm for all 4 blocks: blocks.1.norm1.weight is the same parameter (and at "
            "1 more place); make one norm for each block, inside of the loop that makes the blocks",
        ),
    ),
)
