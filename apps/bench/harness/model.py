"""A whole llama-like model of 1 to 3 GB: tokens per second by ranks and threads, beside the bare machine."""
import json

from . import layers
from .machine import ROOT, middle

JOB = ROOT / "configs/bench/llama-1b-like.json"
SMALL = {"f32": 8, "bf16": 16}  # layers: about 2 GB each


def job_of(machine, mode, ranks, dtype):
    job = json.loads(JOB.read_text())
    job.pop("$schema")
    job["mesh"]["axes"]["tp"] = ranks
    job["model"]["num_hidden_layers"] = 4 if machine.quick else SMALL[dtype]
    job["workload"].update(mode=mode, dtype=dtype)
    return job


def planned_bytes(report):
    return report.get("planned_bytes") or sum(row["bytes"]["predicted"] for row in report["memory"])


def measure_run(machine, dtype, mode, ranks, threads):
    """The report, and the flops of the bare products or the bytes of the read probe per second just before."""
    job = job_of(machine, mode, ranks, dtype)
    if mode == "prefill":
        products = layers.products_of(job["model"], layers.TOKENS)
        bound = machine.matmul(products, dtype if machine.bf16 else "f32", ranks * threads)
    else:
        bound = machine.read_bandwidth(ranks * threads)
    return machine.run(job, ranks, threads, 5 if mode == "prefill" else 10), bound


def measure_one(machine, dtype, splits):
    """Reports by (mode, ranks, threads), and the machine's own speed beside each, round by round."""
    reports = {(mode, *split): [] for mode in ("prefill", "decode") for split in splits}
    bounds = {key: [] for key in reports}
    rounds = 1 if machine.quick else 2  # each run is the median of repeats of its own
    for number in range(rounds):
        for mode, ranks, threads in reports:
            what = f"model, {dtype}, {mode}, {ranks} x {threads}, round {number + 1} of {rounds}"
            machine.say(what)
            report, bound = machine.steady(what, lambda: measure_run(machine, dtype, mode, ranks, threads))
            reports[mode, ranks, threads].append(report)
            bounds[mode, ranks, threads].append(bound)
    return reports, bounds


def measure(machine, figures):
    splits = [(1, 1)] + ([(1, machine.threads), (2, 1)] if machine.threads > 1 else [])
    rows, memory = [], []
    for dtype in ("f32", "bf16"):
        reports, bounds = measure_one(machine, dtype, splits)
        for (mode, ranks, threads), found in reports.items():
            field, unit = ("flops_per_second", "GFLOP/s") if mode == "prefill" else ("bytes_per_second", "GB/s")
            rate = middle([report["time"][field] for report in found])
            tokens = middle([report["time"]["tokens_per_second"] for report in found])
            share = middle([report["time"][field] / bound for report, bound in zip(found, bounds[mode, ranks, threads])])
            rows.append([dtype, mode, f"{ranks} x {threads}", f"{tokens:.1f}", f"{rate / 1e9:.1f} {unit}",
                         f"{share:.2f}"])
            peaks = [report.get("peak_resident_bytes", 0) / planned_bytes(report) for report in found]
            memory += [peak for peak in peaks if peak > 0]
    figures.table("Whole model, prefill of 128 tokens and decode at position 128",
                  ["", "", "ranks x threads", "tokens/s", "rate", "of matmul peak or read probe"], rows)
    if not machine.bf16:
        figures.tables[-1]["title"] += "; the peak is that of f32 products"
    if memory:
        figures.add("G8", max(memory), samples=memory, note="the worst of all runs of the model")
    else:
        figures.missing("G8", "run does not report its peak memory")
