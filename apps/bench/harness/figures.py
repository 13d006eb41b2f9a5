"""The bars, and the figures that are put beside them."""

# id: (what, the bar in words, the bar). A figure passes when it is on the good side of the bar, >= unless said.
BARS = {
    "P1": ("405B on 16,384 devices planned, JSON to a file", "<= 50 ms", 50.0, "<="),
    "P1 memory": ("its peak resident memory", "<= 64 MiB", 64.0, "<="),
    "P1 devices": ("1,048,576 devices / 16,384", "<= 1.2", 1.2, "<="),
    "P2": ("1,000 layers of one kind / 100", "<= 1.2", 1.2, "<="),
    "P3": ("1,000 jobs validated in one process", "<= 2 s", 2.0, "<="),
    "G1 2048": ("prefill layer / packed oneDNN matmul, FLOP/s, hidden 2048", ">= 0.92", 0.92, ">="),
    "G1 4096": ("the same, hidden 4096", ">= 0.92", 0.92, ">="),
    "G1 1024": ("the same, hidden 1024", ">= 0.88", 0.88, ">="),
    "G2 prefill": ("2 ranks x 1 thread / 1 rank x 2 threads, prefill", ">= 0.97", 0.97, ">="),
    "G2 decode": ("the same, decode", ">= 0.95", 0.95, ">="),
    "G3": ("decode: weights and cache per second / read probe", ">= 0.90", 0.90, ">="),
    "G3 int8": ("the same with int8 weights", ">= 0.85", 0.85, ">="),
    "G3 int8 prefill": ("prefill, int8 weights / the dtype's own, FLOP/s", "-", None, ">="),
    "G4": ("decode: oneDNN's M=1 products / ours, time", ">= 1.4", 1.4, ">="),
    "G5 16 KiB": ("MPI's all-reduce / ours, time, 2 ranks", ">= 2.5", 2.5, ">="),
    "G5 1 MiB": ("the same", ">= 1.5 near, 4 far", 1.5, ">="),
    "G5 any": ("the same, the worst of all sizes", ">= 1.0", 1.0, ">="),
    "G6": ("whole prefill / llama.cpp, torch, distributed-llama", ">= 1.6, 1.15, 1.5", None, ">="),
    "G6d": ("whole decode / llama.cpp, distributed-llama", ">= 1.0, 1.1", None, ">="),
    "G7 prefill": ("4 ranks on 2 cores / 2 ranks, prefill", ">= 0.85", 0.85, ">="),
    "G7 decode": ("the same, decode", ">= 0.75", 0.75, ">="),
    "G8": ("peak resident memory of a rank / planned", "1.00 - 1.10", 1.10, "<="),
    "G10 prefill": ("local / fused, time of a layer, prefill", ">= 1.15", 1.15, ">="),
    "G10 decode": ("the same, decode", ">= 1.15", 1.15, ">="),
    "G11": ("time outside kernels and collectives", "<= 3 %", 3.0, "<="),
}


class Figures:
    """What was measured: rows of the table, and side-by-side tables with more."""

    def __init__(self):
        self.rows = []
        self.tables = []

    def add(self, name, value, unit="", note="", samples=None, bar=None):
        what, text, limit, side = BARS[name]
        limit = bar if bar is not None else limit
        passed = None
        if value is not None and limit is not None:
            passed = value <= limit if side == "<=" else value >= limit
        self.rows.append({"id": name, "what": what, "value": value, "unit": unit, "bar": text, "passed": passed,
                          "note": note, "samples": samples or []})

    def missing(self, name, why):
        self.add(name, None, note=why)

    def table(self, title, columns, rows):
        self.tables.append({"title": title, "columns": columns, "rows": rows})

    def print(self):
        for table in self.tables:
            print_table(table["title"], table["columns"], table["rows"])
        if self.rows:
            rows = [[row["id"], row["what"], value_text(row), row["bar"], mark(row), row["note"]] for row in self.rows]
            print_table("Figures and bars", ["", "what", "ours", "bar", "", "note"], rows)


def mark(row):
    return {True: "pass", False: "MISS", None: "-"}[row["passed"]]


def value_text(row):
    if row["value"] is None:
        return "-"
    digits = 2 if abs(row["value"]) < 10 else 1
    return f"{row['value']:.{digits}f}{' ' if row['unit'] else ''}{row['unit']}"


def print_table(title, columns, rows):
    cells = [columns] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n{title}")
    for row in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
