"""Layers of a llama at full width: providers side by side, ranks against threads, against the bare machine."""
from .machine import middle

WIDTHS = {  # hidden: intermediate, heads, key/value heads, layers that are measured together
    1024: (4096, 16, 4, 4),
    2048: (8192, 32, 8, 2),
    4096: (14336, 32, 8, 1),
}
TOKENS = 128
PROVIDERS = ("local", "fused", "inference", "auto", "int8")
BACKENDS = {"int8": {"provider": "inference", "weight_dtype": "int8"}}


def model_of(hidden, layers=None):
    intermediate, heads, kv_heads, count = WIDTHS[hidden]
    return {"model_type": "llama", "hidden_size": hidden, "intermediate_size": intermediate, "vocab_size": 1024,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads, "num_hidden_layers": layers or count,
            "max_position_embeddings": 4096, "tie_word_embeddings": False, "torch_dtype": "float32"}


def job_of(model, mode, provider, ranks, dtype):
    workload = {"mode": mode, "batch_size": 1, "sequence_length": TOKENS, "dtype": dtype}
    if mode == "decode":
        workload["cache_length"] = 2 * TOKENS
    return {"model": model, "mesh": {"axes": {"tp": ranks}}, "partition_axis": {"hidden_state_axis": None},
            "backend": BACKENDS.get(provider, {"provider": provider}), "workload": workload}


def products_of(model, tokens):
    """(m, k, n) of the products of one layer as a fused executor makes them."""
    hidden, intermediate = model["hidden_size"], model["intermediate_size"]
    head = hidden // model["num_attention_heads"]
    qkv = hidden + 2 * head * model["num_key_value_heads"]
    return [(tokens, hidden, qkv), (tokens, hidden, hidden), (tokens, hidden, 2 * intermediate),
            (tokens, intermediate, hidden)]


def repeats(machine, mode, hidden):
    few = 3 if mode == "prefill" else 12
    return max(3, few * 2048 // hidden // (2 if machine.quick else 1))


def outside_percent(report):
    """Of the time of a step, what no kernel and no collective took."""
    time = report["time"]
    outside = time.get("outside_seconds", time["mean_step_seconds"] - sum(row["seconds"] for row in time["steps"]))
    return 100 * outside / time["mean_step_seconds"]


class Variants:
    """Runs of one width; a round goes once through all of them and through the probes of the machine."""

    def __init__(self, machine, hidden):
        self.machine = machine
        self.hidden = hidden
        self.model = model_of(hidden, 1 if machine.quick else None)
        self.keys = [(mode, provider, 1, machine.threads) for mode in ("prefill", "decode") for provider in PROVIDERS]
        if machine.threads > 1:
            self.keys += [(mode, "auto", ranks, 1) for mode in ("prefill", "decode") for ranks in (2, 4)]
        self.reports = {key: [] for key in self.keys}
        self.matmul, self.fma, self.read = [], [], []

    def measure(self):
        for number in range(self.machine.rounds):
            what = f"layers of {self.hidden}, round {number + 1} of {self.machine.rounds}"
            self.machine.say(what)
            reports, matmul, fma, read = self.machine.steady(what, self.measure_round)
            self.matmul.append(matmul)
            self.fma.append(fma)
            self.read.append(read)
            for key, report in reports.items():
                self.reports[key].append(report)

    def measure_round(self):
        machine = self.machine
        matmul = machine.matmul(products_of(self.model, TOKENS), machine.dtype, machine.threads)
        fma, read = machine.fma(machine.threads), machine.read_bandwidth(machine.threads)
        reports = {}
        for mode, provider, ranks, threads in self.keys:
            job = job_of(self.model, mode, provider, ranks, machine.dtype)
            reports[mode, provider, ranks, threads] = machine.run(job, ranks, threads,
                                                                  repeats(machine, mode, self.hidden))
        return reports, matmul, fma, read

    def provider(self, key):
        """What a variant ran with: `auto` is what a job without a provider gets."""
        found = self.reports[key][0]["provider"]
        return key[1] if found == key[1] else f"{key[1]}: {found}"

    def samples(self, key, field):
        return [report["time"][field] for report in self.reports[key]]

    def seconds(self, mode, provider, ranks, threads):
        return middle(self.samples((mode, provider, ranks, threads), "step_seconds"))

    def ratios(self, key, other):
        """Time of `key` over that of `other`, round by round."""
        return [a / b for a, b in zip(self.samples(key, "step_seconds"), self.samples(other, "step_seconds"))]

    def table(self, figures):
        rows = []
        for mode in ("prefill", "decode"):
            local = self.seconds(mode, "local", 1, self.machine.threads)
            for key in (key for key in self.keys if key[0] == mode):
                ranks, threads = key[2:]
                seconds = self.seconds(*key)
                rate = middle(self.samples(key, "flops_per_second" if mode == "prefill" else "bytes_per_second"))
                milliseconds = 1e3 * seconds / self.model["num_hidden_layers"]
                rows.append([mode, self.provider(key), f"{ranks} x {threads}", f"{milliseconds:.2f}",
                             f"{rate / 1e9:.1f} " + ("GFLOP/s" if mode == "prefill" else "GB/s"),
                             f"{local / seconds:.2f}"])
        figures.table(f"One layer, hidden {self.hidden}, {TOKENS} tokens before or at once, {self.machine.dtype}",
                      ["", "provider", "ranks x threads", "ms", "rate", "local / this"], rows)


def add_ratios(figures, name, ratios, note=""):
    figures.add(name, middle(ratios), note=note, samples=ratios)


def judge(machine, figures, runs):
    """The bars that concern one width; G2 to G11 once, at hidden 2048."""
    threads, hidden = machine.threads, runs.hidden
    note = "" if machine.bf16 else "f32: no bf16 products here"
    best = ("prefill", "auto", 1, threads)
    rates = runs.samples(best, "flops_per_second")
    of_peak = "" if machine.bf16 else \
        f"; of the f32 units {100 * middle(rates) / middle(runs.fma):.0f} %, " \
        f"matmul {100 * middle(runs.matmul) / middle(runs.fma):.0f} %"
    add_ratios(figures, f"G1 {hidden}", [rate / raw for rate, raw in zip(rates, runs.matmul)], note + of_peak)
    if hidden != 2048:
        return
    decode = ("decode", "auto", 1, threads)
    if threads > 1:
        for mode, whole in (("prefill", best), ("decode", decode)):
            add_ratios(figures, f"G2 {mode}", runs.ratios(whole, (mode, "auto", 2, 1)), note)
            add_ratios(figures, f"G7 {mode}", runs.ratios((mode, "auto", 2, 1), (mode, "auto", 4, 1)), note)
    add_ratios(figures, "G3", [rate / read for rate, read in zip(runs.samples(decode, "bytes_per_second"), runs.read)],
               note)
    add_ratios(figures, "G3 int8", [rate / read for rate, read in zip(
        runs.samples(("decode", "int8", 1, threads), "bytes_per_second"), runs.read)])
    add_ratios(figures, "G3 int8 prefill", runs.ratios(("prefill", "inference", 1, threads),
                                                       ("prefill", "int8", 1, threads)), note)
    for mode in ("prefill", "decode"):
        add_ratios(figures, f"G10 {mode}", runs.ratios((mode, "local", 1, threads), (mode, "fused", 1, threads)), note)
    outside = [max(outside_percent(a), outside_percent(b))
               for a, b in zip(runs.reports[best], runs.reports[decode])]
    figures.add("G11", middle(outside), "%", "the worse of prefill and decode", outside)


def measure(machine, figures):
    for hidden in ([2048] if machine.quick else [1024, 2048, 4096]):
        runs = Variants(machine, hidden)
        runs.measure()
        runs.table(figures)
        judge(machine, figures, runs)
