"""P1 to P3: whole processes that plan and validate."""
import json
import shutil

from .machine import ROOT, middle

BIG = ROOT / "configs/llama-3.1-405b.16384.json"
MILLION = ["--mesh", "dp=1024,fsdp=32,tp=8,sp=4", "--set", "mesh.devices=1048576", "--set", "workload.batch_size=32768"]


def interleaved(machine, commands, rounds):
    """Per command its (seconds, bytes) of every round; the rounds go through all commands."""
    results = [[] for _ in commands]
    output = ["--format", f"json={machine.directory / 'plan.json'}"]
    for _ in range(rounds):
        for samples, words in zip(results, commands):
            samples.append(machine.timed("shardplan", "plan", *words, *output))
    return results


def write_jobs(directory, count):
    """`count` jobs on the shipped models: each shipped job with other batch sizes."""
    shutil.copytree(ROOT / "configs/models", directory / "models")
    shipped = [path for path in sorted((ROOT / "configs").glob("*.json")) if "schema" not in path.name]
    for number in range(count):
        job = json.loads(shipped[number % len(shipped)].read_text())
        job["workload"]["batch_size"] *= 1 + number // len(shipped)
        (directory / f"job{number:05}.json").write_text(json.dumps(job, indent=2))


def measure(machine, figures):
    machine.say("planner")
    commands = [[BIG], [BIG, *MILLION], *([BIG, "--set", f"model.num_hidden_layers={n}"] for n in (100, 1000))]
    one, million, hundred, thousand = interleaved(machine, commands, 7 if machine.quick else 21)
    seconds = {name: [sample[0] for sample in samples]
               for name, samples in (("one", one), ("million", million), ("hundred", hundred), ("thousand", thousand))}
    figures.add("P1", 1e3 * middle(seconds["one"]), "ms", samples=seconds["one"])
    figures.add("P1 memory", max(sample[1] for sample in one) / 2**20, "MiB")
    figures.add("P1 devices", middle(seconds["million"]) / middle(seconds["one"]), samples=seconds["million"])
    figures.add("P2", middle(seconds["thousand"]) / middle(seconds["hundred"]),
                note=f"{1e3 * middle(seconds['hundred']):.0f} ms, {1e3 * middle(seconds['thousand']):.0f} ms")
    jobs = machine.directory / "jobs"
    jobs.mkdir()
    write_jobs(jobs, 1000)
    times = [machine.timed("shardplan", "validate", "-q", jobs)[0] for _ in range(machine.rounds)]
    figures.add("P3", middle(times), "s", samples=times)
