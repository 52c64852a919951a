"""Templates of a script for a run of version 1 of the engine, which drew by torch's own generators."""

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

CHARACTERS = '''
def batch(step):
    """Inputs and targets [BATCH, T] of a step, from random offsets."""
    starts = random_below(len(CODES) - T, step)
    rows = torch.stack([CODES[i : i + T + 1] for i in itertools.islice(starts, BATCH)])
    return rows[:, :-1], rows[:, 1:]'''

IMPORTS: dict[str, tuple[str, ...]] = {
    "markov": ("import bisect", "import itertools"),
    "copy": ("import itertools",),
    "prose": ("import itertools", "from pydoc_data.topics import topics"),
    "text": ("import collections", "import itertools", "import pathlib", "import sys"),
}


DRAW = '''
def draw(name, values, size{normal}):
    """Every parameter draws from a generator of its own, seeded by INIT_SEED and its name."""
    digest = hashlib.sha256(f"{{INIT_SEED}}:{{name}}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
{body}'''
NORMAL = "    values.normal_(0.0, size, generator=generator)"
UNIFORM = "    values.uniform_(-1.0, 1.0, generator=generator).mul_(size)"
EITHER = f"""    if normal:
    {NORMAL}
    else:
    {UNIFORM}"""

DROPOUT = ""
"""Its dropout is that of pasted code."""
