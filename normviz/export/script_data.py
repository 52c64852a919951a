"""The script's lines that make the batches: numpy's generators of `normviz.data`, written out."""

from __future__ import annotations

from ..config import RunConfig
from ..corpora import STATES, SUCCESSOR_P, chain, prose
from ..limits import HELD_OUT, MAX_SYMBOLS

COPY_KINDS = 32

WORDS = '''
def random_words(step):
    """64-bit random words that depend on DATA_SEED and the step alone: numpy's Philox generator."""
    top = 2**64 - 1
    for counter in itertools.count(1):
        a, b, c, d, key, other = counter, 0, 0, 0, DATA_SEED, step
        for _ in range(10):
            x, y = a * 0xD2E7470EE14C6C93, c * 0xCA5A826395121157
            a, b, c, d = (y >> 64) ^ b ^ key, y & top, (x >> 64) ^ d ^ other, x & top
            key, other = (key + 0x9E3779B97F4A7C15) & top, (other + 0xBB67AE8584CAA73B) & top
        yield from (a, b, c, d)'''

BELOW = '''
def random_below(n, step):
    """Random whole numbers below n, by Lemire's method on the halves of words, as in numpy."""
    for word in random_words(step):
        for half in (word & 0xFFFFFFFF, word >> 32):
            if (half * n) & 0xFFFFFFFF >= (2**32 - n) % n:
                yield (half * n) >> 32'''

MARKOV = '''
# Each of {n} states has four successors, of these probabilities; sequences start stationary.
P = {p}
SUCCESSORS = [
{rows}
]
transition = torch.zeros(V, V, dtype=torch.float64)
for state, successors in enumerate(SUCCESSORS):
    transition[state, successors] = torch.tensor(P, dtype=torch.float64)
START = torch.linalg.matrix_power(transition, 4096)[0].cumsum(0).tolist()
NEXT = list(itertools.accumulate(P[:-1]))


def batch(step):
    """Inputs and targets [BATCH, T] of a step."""
    uniform = ((word >> 11) / 2**53 for word in random_words(step))
    states = [[bisect.bisect(START, next(uniform)) for _ in range(BATCH)]]
    for _ in range(T):
        states.append([SUCCESSORS[s][bisect.bisect(NEXT, next(uniform))] for s in states[-1]])
    rows = torch.tensor(states{device}).T
    return rows[:, :-1], rows[:, 1:]'''

COPY = '''
def batch(step):
    """Inputs and targets [BATCH, T] of a step: random tokens, then the same tokens once more."""
    tokens = random_below(V, step)
    first = torch.tensor([[next(tokens) for _ in range(T // 2)] for _ in range(BATCH)]{device})
    rows = torch.cat([first, first], 1)
    targets = rows.roll(-1, 1)
    targets[:, : T // 2 - 1] = targets[:, -1] = -100  # the loss counts the second half alone
    return rows, targets'''

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
CODES = torch.tensor([CODE.get(character, V - 1) for character in TEXT]{device})
CODES = CODES[: len(CODES) - len(CODES) // {held_out}]  # the rest is held out"""

CHECK = """if not hashlib.sha256(TEXT.encode()).hexdigest().startswith("{sha}"):
    raise SystemExit("this is not the text that the run read")
"""

CHARACTERS = '''
def batch(step):
    """Inputs and targets [BATCH, T] of a step, from random offsets."""
    starts = random_below(len(CODES) - T, step)
    rows = torch.stack([CODES[i : i + T + 1] for i in itertools.islice(starts, BATCH)])
    return rows[:, :-1], rows[:, 1:]'''

IMPORTS = {
    "markov": ("import bisect", "import itertools"),
    "copy": ("import itertools",),
    "prose": ("import itertools", "from pydoc_data.topics import topics"),
    "text": ("import collections", "import itertools", "import pathlib", "import sys"),
}


def vocabulary(config: RunConfig) -> int | None:
    """Number of symbols of the config's task; None if it depends on a text."""
    if config.task == "prose":
        return len(prose()[1])
    return {"markov": STATES, "copy": COPY_KINDS}.get(config.task)


def text(config: RunConfig, sha: str | None, device: str, hides: bool = False) -> list[str]:
    """Source that reads the text of a task; `sha` is the SHA-256 of the run's text. With `hides` it
    does not contain the hash of a visitor's text, so it can't check that it reads the same one."""
    if config.task == "prose":
        return [PROSE.format(sha=sha or prose()[2], device=device)]
    if config.task == "text":
        limits = {"symbols": MAX_SYMBOLS, "held_out": HELD_OUT}
        check = "" if hides else CHECK.format(sha=config.text)
        return [OWN.format(check=check, device=device, **limits)]
    return []


def batches(config: RunConfig, device: str) -> list[str]:
    """Sources that make the batches; `device` is the argument that places a tensor on the device."""
    if config.task == "markov":
        p, rows = SUCCESSOR_P.tolist(), chain()[0].tolist()
        four = [", ".join(map(str, rows[i : i + 4])) for i in range(0, STATES, 4)]
        listed = "\n".join(f"    {row}," for row in four)
        return [WORDS, MARKOV.format(n=STATES, p=p, rows=listed, device=device)]
    return [WORDS, BELOW, COPY.format(device=device) if config.task == "copy" else CHARACTERS]
