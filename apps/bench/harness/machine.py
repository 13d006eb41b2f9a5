"""Starts the programs that measure, and says in which state the machine was: nothing here judges a figure."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
NEAR_NS = 120  # a cache line between cores of one last-level cache takes 20 to 60 ns, between dies 200 and more
MOVED = 0.15   # of the read probe, from before to after
TRIES = 3      # to measure something between two probes that agree


class Failed(Exception):
    """A program that did not do what it should."""


class Probed:
    """Measures between probes of the machine, which probe() makes; say() tells people."""

    def __init__(self):
        self.probes = [self.probe()]
        self.void = []

    def steady(self, what, measure):
        """What measure() returns, made between two probes that agree; else its last try, and the reasons are kept."""
        for _ in range(TRIES):
            before = self.probe()
            result = measure()
            after = self.probe()
            self.probes += [before, after]
            reasons = why_void(before, after)
            if not reasons:
                return result
            self.say(f"{what}: {'; '.join(reasons)}")
        self.void.append(f"{what}: {'; '.join(reasons)}")
        return result


class Machine(Probed):
    def __init__(self, build, quick):
        self.build = pathlib.Path(build).resolve()
        self.quick = quick
        self.rounds = 5
        self.cores = len(os.sched_getaffinity(0))
        self.threads = min(2, self.cores)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="shardplan-bench"))
        self.environment = dict(os.environ, OMPI_MCA_mpi_warn_on_fork="0")
        if os.geteuid() == 0:
            # Open MPI refuses to start as root, as in a container, unless told twice.
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        super().__init__()
        self.bf16 = self.probes[0]["bf16"]

    @property
    def dtype(self):
        return "bf16" if self.bf16 else "f32"

    def program(self, name):
        return self.build / "bin" / name

    def has(self, name):
        return self.program(name).exists()

    def call(self, name, *words, ranks=0):
        """Standard output of a program of ours, `ranks` of it under mpirun; raises Failed with what it said."""
        words = [str(self.program(name)), *map(str, words)]
        if ranks:
            crowded = ["--oversubscribe"] if ranks > self.cores else []  # else each is bound to a core of its own
            words = ["mpirun", "-q", *crowded, "-n", str(ranks), *words]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
        return done.stdout

    def timed(self, name, *words):
        """(seconds, peak resident bytes) of a process; what it prints is thrown away."""
        start = time.perf_counter()
        process = subprocess.Popen([str(self.program(name)), *map(str, words)], stdout=subprocess.DEVNULL,
                                   env=self.environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise Failed(f"{name} {' '.join(map(str, words))}: exit status {process.returncode}")
        return seconds, 1024 * usage.ru_maxrss

    def probe(self):
        return json.loads(self.call("shardplan_bench_probe", "memory", self.threads, 0.5))

    def fma(self, threads):
        """f32 flops per second of the multiply-and-add units."""
        return json.loads(self.call("shardplan_bench_probe", "fma", threads, 0.3))["flops_per_second"]

    def read_bandwidth(self, threads):
        return json.loads(self.call("shardplan_bench_probe", "memory", threads, 0.3))["bytes_per_second"]

    def matmul(self, shapes, dtype, threads):
        """Flops per second of oneDNN's products with packed weights, one after the other."""
        words = [f"{m}x{k}x{n}" for m, k, n in shapes]
        seconds = 0.2 if self.quick else 0.6
        return json.loads(self.call("shardplan_bench_probe", "matmul", threads, seconds, dtype, *words))[
            "flops_per_second"]

    def run(self, job, ranks, threads, repeat):
        """What `shardplan run --repeat` reports, as its JSON."""
        path = self.directory / "job.json"
        path.write_text(json.dumps(job))
        words = ["run", path, "--ranks", ranks, "--threads", threads, "--repeat", repeat, "--quiet", "--format", "json"]
        return json.loads(self.call("shardplan", *words))

    def say(self, text):
        print(text, file=sys.stderr, flush=True)


def placement(probe):
    return "near" if probe["ping_pong_ns"] < NEAR_NS else "far"


def probe_text(probes):
    """The range of the probes."""
    read = [probe["bytes_per_second"] / 1e9 for probe in probes]
    cores = [probe["ping_pong_ns"] for probe in probes]
    places = " and ".join(sorted({placement(probe) for probe in probes}, reverse=True))
    return f"read {min(read):.1f} to {max(read):.1f} GB/s, core to core {min(cores):.0f} to {max(cores):.0f} ns " \
           f"({places}), {len(probes)} probes"


def why_void(before, after):
    """The reasons for which figures between the two probes say nothing."""
    reasons = []
    if placement(before) != placement(after):
        reasons.append(f"the cores moved from {placement(before)} to {placement(after)}")
    change = after["bytes_per_second"] / before["bytes_per_second"] - 1
    if abs(change) > MOVED:
        reasons.append(f"the read probe moved by {100 * change:+.0f} %")
    return reasons


def middle(values):
    return statistics.median(values)
