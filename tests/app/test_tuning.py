"""What the server asks of the interpreter and the C library does what it says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from normviz.home import shipped

THREADS = """
import ctypes, os, re, sys, tempfile, threading
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "server":
    import server
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
met = threading.Barrier(12)
def work():
    met.wait()
    kept = [libc.malloc(2000) for _ in range(1000)]
    met.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    out = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, out)
    libc.fclose(out)
    print(len(re.findall("<heap ", open(file.name).read())), sys.getswitchinterval())
"""


def process(how: str) -> tuple[int, float]:
    """Arenas and switch interval of a process with twelve threads that took memory at once."""
    command = [sys.executable, "-c", THREADS, str(shipped("app")), how]
    arenas, seconds = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.split()
    return int(arenas), float(seconds)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="of the GNU C library alone")
def test_the_servers_threads_share_two_arenas_and_take_turns_sooner() -> None:
    plain, tuned = process("plain"), process("server")
    assert plain[0] > 2 and tuned[0] <= 2
    assert tuned[1] < plain[1] / 10
