"""What the benchmarks of single rooms measure: shardplan_bench_kernels (G4) and shardplan_bench_comm (G5)."""
import json
import re

from .machine import middle, placement

# matmul/bf16/1x4096x4096/ours/real_time
PRODUCT = re.compile(r"matmul/(\w+)/1x(\d+)x(\d+)/(ours|onednn)(/|$)")


def kernels(machine, figures):
    name = "shardplan_bench_kernels"
    if not machine.has(name):
        figures.missing("G4", f"{name} is not built")
        return
    machine.say("kernels")
    out = machine.directory / "kernels.json"
    machine.environment["OMP_NUM_THREADS"] = str(machine.threads)
    words = ["--benchmark_filter=matmul/.*/1x", "--benchmark_enable_random_interleaving=true",
             f"--benchmark_repetitions={machine.rounds}", f"--benchmark_min_time={0.02 if machine.quick else 0.1}",
             f"--benchmark_out={out}", "--benchmark_out_format=json"]
    machine.steady("kernels", lambda: machine.call(name, *words))
    del machine.environment["OMP_NUM_THREADS"]
    times = {}
    for run in json.loads(out.read_text())["benchmarks"]:
        found = PRODUCT.match(run["name"])
        if run.get("run_type") == "iteration" and found:
            dtype, n, k, variant, _ = found.groups()
            times.setdefault((dtype, int(n), int(k)), {}).setdefault(variant, []).append(run["real_time"])
    compare_products(machine, figures, times)


def compare_products(machine, figures, times):
    rows, sums = [], {}
    for (dtype, n, k), variants in sorted(times.items()):
        if {"ours", "onednn"} <= variants.keys():
            ours, theirs = middle(variants["ours"]), middle(variants["onednn"])
            rows.append([dtype, f"{k} -> {n}", f"{ours / 1e3:.0f}", f"{theirs / 1e3:.0f}", f"{theirs / ours:.2f}"])
            if min(n, k) >= 4096:  # those of a wide layer, whose weights no cache holds
                total = sums.setdefault(dtype, [0.0, 0.0])
                total[0] += ours
                total[1] += theirs
    figures.table("Products of one row", ["", "size", "ours us", "oneDNN us", "oneDNN / ours"], rows)
    if not sums:
        figures.missing("G4", "no product was measured with both")
        return
    dtype = machine.dtype if machine.dtype in sums else next(iter(sums))
    ours, theirs = sums[dtype]
    figures.add("G4", theirs / ours, note=f"{dtype}, the products of a layer of 4096")


def comm(machine, figures):
    """The program prints one JSON object a line: {"collective", "dtype", "bytes", "mpi_us", "us"}."""
    name = "shardplan_bench_comm"
    if not machine.has(name) or machine.threads < 2:
        for row in ("G5 16 KiB", "G5 1 MiB", "G5 any"):
            figures.missing(row, "needs two cores" if machine.has(name) else f"{name} is not built")
        return
    machine.say("comm")
    kinds = ["all_reduce"] if machine.quick else []
    text = machine.steady("comm", lambda: machine.call(name, *kinds, ranks=2))
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    found = [line for line in lines if "collective" in line]
    figures.table("Collectives on 2 ranks, the writing of their input included",
                  ["", "dtype", "bytes", "ours us", "MPI us", "MPI / ours"],
                  [[row["collective"], row["dtype"], row["bytes"], f"{row['us']:.1f}", f"{row['mpi_us']:.1f}",
                    f"{row['mpi_us'] / row['us']:.2f}"] for row in found])
    ratios = {row["bytes"]: row["mpi_us"] / row["us"] for row in found
              if row["collective"] == "all_reduce" and row["dtype"] == "f32"}
    where = placement(machine.probes[-1])
    for label, size, bar in (("G5 16 KiB", 2**14, 2.5), ("G5 1 MiB", 2**20, 4.0 if where == "far" else 1.5)):
        if size in ratios:
            figures.add(label, ratios[size], note=where, bar=bar)
        else:
            figures.missing(label, "this size was not measured")
    if ratios:
        worst = min(ratios, key=ratios.get)
        figures.add("G5 any", ratios[worst], note=f"{worst} bytes")
