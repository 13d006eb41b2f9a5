"""Runs the program for the tests of the command line: separate streams, a bare environment, optional terminal."""
import os
import pathlib
import pty
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["SHARDPLAN"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
JOB = str(CONFIGS / "tiny-llama.4ranks.json")
TIMEOUT = 300  # seconds; only a program that hangs comes near it
COLOURS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CI")

MODEL = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8,
         "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "tie_word_embeddings": False,
         "torch_dtype": "float32"}


def environment(changes):
    env = {name: value for name, value in os.environ.items() if name not in COLOURS}
    env.update({"TERM": "xterm", "LC_ALL": "C.UTF-8"})
    env.update(changes or {})
    return env


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def launch(words, stdin=None, env=None, cwd=None):
    done = subprocess.run([str(word) for word in words], input=None if stdin is None else stdin.encode(),
                          stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True,
                          env=environment(env), cwd=cwd, timeout=TIMEOUT)
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def shardplan(*words, **options):
    return launch([PROGRAM, *words], **options)


def mpirun(ranks, *words, **options):
    return launch(["mpirun", "-q", "-n", ranks, PROGRAM, *words], **options)


def on_terminal(*words, env=None):
    """Standard output and error on one pseudo-terminal; everything comes back as `out`."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env=environment(env))
    os.close(slave)
    pieces = []
    try:
        while piece := os.read(master, 65536):
            pieces.append(piece)
    except OSError:  # Linux: the last process has closed its end
        pass
    os.close(master)
    return Result(process.wait(timeout=TIMEOUT), b"".join(pieces).decode(errors="replace"), "")


class CommandTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="shardplan_cli_")
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def assertExit(self, result, code):
        self.assertEqual(result.code, code, repr(result))

    def assertLacks(self, text, *pieces):
        for piece in pieces:
            self.assertNotIn(piece, text)

    def files(self):
        return sorted(path.relative_to(self.directory).as_posix() for path in self.directory.rglob("*")
                      if path.is_file())
