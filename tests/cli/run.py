"""shardplan run: mpirun, exit codes of all ranks, colours under mpirun."""
import json
import os
import signal
import struct
import subprocess
import time
import unittest

from command import (CONFIGS, JOB, MODEL, PROGRAM, TIMEOUT, CommandTest, environment, mpirun, on_terminal,
                     shardplan)

TWO_RANKS = {"model": MODEL, "mesh": {"axes": {"tp": 2}}, "partition_axis": {"hidden_state_axis": None},
             "workload": {"batch_size": 1, "sequence_length": 8, "dtype": "f32"}}
ROOT_ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1"}


def safetensors(tensors):
    """A file of f32 tensors: {name: shape}, all zero."""
    header, offset = {}, 0
    for name, shape in tensors.items():
        size = 4
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(offset)


def children(process):
    try:
        return [int(pid) for pid in open(f"/proc/{process}/task/{process}/children").read().split()]
    except OSError:
        return []


def grandchildren(process):
    """The ranks of a run that started mpirun by itself."""
    ranks = [rank for mpirun in children(process) for rank in children(mpirun)]
    return [rank for rank in ranks if os.path.realpath(f"/proc/{rank}/exe") == os.path.realpath(PROGRAM)]


def talks_to_others(rank):
    """MPI is up: while mpirun still starts ranks, it does not always notice that one of them dies."""
    try:
        with open(f"/proc/{rank}/maps", encoding="utf-8") as maps:
            return "vader_segment" in maps.read()
    except OSError:
        return False


class Run(CommandTest):
    def setUp(self):
        super().setUp()
        self.job = self.write("two.json", json.dumps(TWO_RANKS))

    def run_job(self, *words, **options):
        return shardplan("run", *words, env={**ROOT_ALLOWED, **options.pop("env", {})}, **options)

    def json_of_run(self, *words):
        result = self.run_job(*words, "--format", "json")
        self.assertExit(result, 0)
        return json.loads(result.out)

    def test_starts_mpirun_itself(self):
        result = self.run_job(self.job, "--steps", "1", "--format", "json")
        self.assertExit(result, 0)
        report = json.loads(result.out)
        self.assertEqual(report["ranks"], 2)
        self.assertTrue(report["verify"]["passed"])
        self.assertLacks(result.out + result.err, "\x1b")

    def test_signals(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 130)):
            process = subprocess.Popen([PROGRAM, "run", self.job, "--repeat", "100000"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=environment(ROOT_ALLOWED))
            time.sleep(0.5)
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=TIMEOUT), code)

    def test_a_killed_rank_is_an_internal_error(self):
        process = subprocess.Popen([PROGRAM, "run", self.job, "--repeat", "100000"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=environment(ROOT_ALLOWED))
        while len(ranks := grandchildren(process.pid)) < 2 or not all(map(talks_to_others, ranks)):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        os.kill(ranks[0], signal.SIGKILL)
        self.assertEqual(process.wait(timeout=TIMEOUT), 3)

    def test_models_that_make_more_of_bf16_are_measured(self):
        job = str(CONFIGS / "tiny-deepseek.decode.4ranks.json")
        words = ["--set", "workload.dtype=bf16", "--set", "model.tie_word_embeddings=true", "--seed", "0"]
        verify = self.json_of_run(job, *words)["verify"]
        self.assertTrue(verify["passed"])
        self.assertGreater(verify["own_rms"], 0.0)
        self.assertNotIn("own_rms", self.json_of_run(job, "--set", "workload.dtype=bf16")["verify"])

    def test_what_int8_loses_is_no_failure(self):
        model = {"model_type": "granite", "hidden_size": 256, "intermediate_size": 128, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128}  # sharp softmax
        job = self.write("granite.json", json.dumps({
            "model": model, "mesh": {"axes": {"tp": 1}}, "backend": {"weight_dtype": "int8"},
            "workload": {"mode": "decode", "batch_size": 6, "sequence_length": 5, "dtype": "f32"}}))
        report = self.json_of_run(job, "--seed", "2")
        self.assertTrue(report["verify"]["passed"])
        self.assertFalse(report["rounding"]["passed"])

    def test_an_insert_of_one_token_may_begin_a_sequence(self):
        job = str(CONFIGS / "tiny-llama.insert.4ranks.json")
        report = self.json_of_run(job, "--mesh", "tp=1", "--set", "workload.insert_length=1",
                                  "--prompt-lengths", "5,0,3,24")
        self.assertTrue(report["verify"]["passed"])

    def test_the_environment_is_checked_before_anything_starts(self):
        result = self.run_job(self.job, env={"SHARDPLAN_TRANSPORT": "foo"})
        self.assertExit(result, 2)
        self.assertIn("must be auto, mpi or shared", result.err)
        self.assertEqual(result.err.count("SHARDPLAN_TRANSPORT"), 1)

    def test_generate(self):
        result = self.run_job(self.job, "--generate", "5", "--format", "json")
        self.assertExit(result, 0)
        generated = json.loads(result.out)["generated"]
        self.assertEqual([len(ids) for ids in generated["ids"]], [5] * len(generated["ids"]))
        self.assertEqual(generated["mismatches"], 0)
        self.assertIn("Generated tokens", self.run_job(self.job, "--generate", "2").out)
        self.assertExit(self.run_job(self.job, "--generate", "2", "--steps", "2"), 2)
        self.assertExit(self.run_job(self.job, "--generate", "0"), 2)
        self.assertExit(self.run_job(self.job, "--generate", "2", "--mode", "prefill"), 2)
        short = self.run_job(self.job, "--generate", "9", "--set", "workload.cache_length=15")
        self.assertExit(short, 1)
        self.assertIn("SP6002", short.err)

    def test_int8_weights(self):
        job = str(CONFIGS / "tiny-llama.int8.2ranks.json")
        result = self.run_job(job, "--steps", "2", "--format", "json")
        self.assertExit(result, 0)
        report = json.loads(result.out)
        self.assertTrue(report["verify"]["passed"])
        self.assertLess(report["verify"]["rms_rel"], 1e-5)
        self.assertTrue(report["rounding"]["passed"])
        self.assertGreater(report["rounding"]["rms_rel"], 1e-4)
        plan = json.loads(shardplan("plan", job, "--format", "json").out)
        self.assertEqual(plan["job"]["weight_dtype"], "int8")
        dtypes = {tensor["pattern"]: tensor["dtype"] for tensor in plan["tensors"]}
        self.assertEqual(dtypes["model.layers.{}.self_attn.q_proj.weight"], "i8")
        self.assertEqual(dtypes["model.embed_tokens.weight"], "f32")
        text = " ".join(self.run_job(job, "--generate", "3").out.split())
        self.assertIn("12 of 12 as the unsharded model generates them", text)
        self.assertIn("as that of the weights before rounding would", text)
        refused = shardplan("plan", job, "--set", "backend.provider=local")
        self.assertExit(refused, 1)
        self.assertIn("SP5001", refused.err)

    def test_prompt_lengths(self):
        two = ("--set", "workload.batch_size=2")
        self.assertExit(self.run_job(self.job, "--generate", "3", "--prompt-lengths", "3,8", *two), 0)
        self.assertExit(self.run_job(self.job, "--mode", "decode", "--prompt-lengths", "3,8", *two), 0)
        self.assertExit(self.run_job(self.job, "--prompt-lengths", "8"), 1)
        self.assertExit(self.run_job(self.job, "--generate", "3", "--prompt-lengths", "3,"), 2)
        self.assertExit(self.run_job(self.job, "--generate", "3", "--prompt-lengths", "3,0", *two), 1)
        self.assertExit(self.run_job(self.job, "--generate", "3", "--prompt-lengths", "1000"), 1)
        short = (*two, "--set", "workload.cache_length=9")
        self.assertExit(self.run_job(self.job, "--generate", "5", "--prompt-lengths", "3,5", *short), 0)
        self.assertExit(self.run_job(self.job, "--generate", "6", "--prompt-lengths", "3,5", *short), 1)
        self.assertExit(self.run_job(self.job, "--mode", "decode", "--steps", "4", "--prompt-lengths", "3,5", *short), 0)

    def test_insert(self):
        insert = {**TWO_RANKS, "workload": {"mode": "insert", "batch_size": 2, "sequence_length": 6,
                                            "insert_length": 4, "cache_length": 16, "dtype": "f32"}}
        for dialect in ("seed", "current"):
            job = self.write("insert.json", json.dumps({**insert, "options": {"compat": dialect}}))
            result = self.run_job(job, "--steps", "2", "--prompt-lengths", "6,0", "--format", "json")
            self.assertExit(result, 0)
            self.assertTrue(json.loads(result.out)["verify"]["passed"])
            self.assertIn("6 tokens in the cache, 4 written behind them each", shardplan("plan", job).out)
        self.assertExit(self.run_job(job, "--steps", "3"), 2)
        self.assertIn("workload.cache_length of 18", self.run_job(job, "--steps", "3").err)
        self.assertExit(self.run_job(job, "--prompt-lengths", "7,6"), 1)
        self.assertIn("SP6002", self.run_job(job, "--mode", "decode").err)  # insert_length is of mode insert

    def test_trace(self):
        file = self.directory / "trace.json"
        self.assertExit(self.run_job(self.job, "--steps", "2", "--no-verify", "--trace", file), 0)
        events = json.loads(file.read_text())["traceEvents"]
        self.assertEqual(list(self.directory.glob("trace.json?*")), [])  # nothing is left beside it
        names = {(event["pid"], event["args"]["name"]) for event in events if event["name"] == "process_name"}
        self.assertEqual(names, {(0, "rank 0 (tp=0)"), (1, "rank 1 (tp=1)")})
        spans = [event for event in events if event["ph"] == "X"]
        for rank in (0, 1):
            own = [event for event in spans if event["pid"] == rank]
            self.assertEqual({event["tid"] for event in own}, {0, 1, 2})
            self.assertEqual([event["name"] for event in own if event["tid"] == 0], ["step 0", "step 1"])
            for event in own:
                self.assertGreaterEqual(event["ts"], 0)
                self.assertGreaterEqual(event["dur"], 0)
                self.assertEqual(event["cat"], ("model", "compute", "communication")[event["tid"]])
            products = [event["args"] for event in own if event["args"].get("flops", 0) > 0]
            self.assertTrue(all(args["inputs"] and args["outputs"] and args["bytes"] > 0 for args in products))
            sums = [event["args"] for event in own if event["name"].startswith("all-reduce")]
            self.assertTrue(sums and all(args["axes"] == ["tp"] and args["wire_bytes"] > 0 for args in sums))
        # The clocks begin together: a collective has not ended on one rank before it has begun on the other.
        for name in {event["name"] for event in spans if event["tid"] == 2}:
            pairs = zip(*([event for event in spans if event["name"] == name and event["pid"] == rank]
                          for rank in (0, 1)))
            for one, other in pairs:
                self.assertGreater(one["ts"] + one["dur"] + 1e6, other["ts"])
                self.assertGreater(other["ts"] + other["dur"] + 1e6, one["ts"])
        self.assertExit(self.run_job(self.job, "--trace", self.directory / "none" / "trace.json"), 2)
        for option, path in (("--trace", self.directory), ("--trace", "-"), ("--logits", self.directory),
                             ("--save-weights", self.job), ("--save-weights", "/proc/none")):
            self.assertExit(self.run_job(self.job, option, path, "--steps", "1"), 2)

    def test_binding_and_threads(self):
        report = json.loads(self.run_job(self.job, "--steps", "1", "--format", "json").out)
        self.assertEqual(len(report["binding"]), 2)
        if len(os.sched_getaffinity(0)) >= 2:  # else the ranks share the core
            self.assertFalse(report["oversubscribed"])
            self.assertNotEqual(report["binding"][0]["cores"], report["binding"][1]["cores"])
        cores = len(os.sched_getaffinity(0))
        result = self.run_job(self.job, "--steps", "1", "--threads", str(cores + 1))
        self.assertExit(result, 0)
        self.assertIn("more threads than cores", result.err)
        self.assertIn("times are not comparable", result.out)
        self.assertNotIn("more threads", self.run_job(self.job, "--threads", str(cores + 1), "-q").err)
        alone = self.write("one.json", json.dumps({**TWO_RANKS, "mesh": {"axes": {"tp": 1}}}))
        report = json.loads(self.run_job(alone, "--steps", "1", "--format", "json").out)
        self.assertLessEqual(report["threads"], cores)
        self.assertEqual(len(report["binding"]), 1)
        self.assertGreater(report["peak_resident_bytes"], report["planned_bytes"])

    def test_under_mpirun(self):
        result = mpirun(2, "run", self.job, "--steps", "1", env=ROOT_ALLOWED)
        self.assertExit(result, 0)
        self.assertIn("passed", result.out)
        self.assertLacks(result.out, "\x1b")  # rank 0 has a pseudo-terminal there, though this is a pipe

    def test_colour_is_passed_on(self):
        self.assertIn("\x1b[", mpirun(2, "run", self.job, "--steps", "1", "--color", "always", env=ROOT_ALLOWED).out)
        self.assertIn("\x1b[", on_terminal("run", self.job, "--steps", "1", env=ROOT_ALLOWED).out)
        self.assertLacks(on_terminal("run", self.job, "--steps", "1", env={**ROOT_ALLOWED, "NO_COLOR": "1"}).out,
                         "\x1b")

    def test_repeat_only_measures(self):
        for mode, tokens in (("prefill", 8), ("decode", 1)):
            result = self.run_job(self.job, "--repeat", "3", "--mode", mode, "--format", "json")
            self.assertExit(result, 0)
            report = json.loads(result.out)
            self.assertIsNone(report["verify"])
            self.assertTrue(report["predictions_hold"])
            time = report["time"]
            self.assertAlmostEqual(time["tokens_per_second"] * time["step_seconds"], tokens)
            self.assertAlmostEqual(time["flops_per_second"] * time["step_seconds"] / time["step_flops"], 1)
        chunks = self.run_job(self.job, "--repeat", "2", "--set", "workload.chunk_length=4", "--format", "json")
        self.assertExit(chunks, 0)
        calls = {row["kind"]: row["calls"] for row in json.loads(chunks.out)["time"]["steps"]}
        self.assertEqual(calls["attention"], MODEL["num_hidden_layers"])
        for option in (("--steps", "2"), ("--generate", "2"), ("--logits", "x")):
            self.assertExit(self.run_job(self.job, "--repeat", "2", *option), 2)

    def test_steps_beyond_the_cache(self):
        decode = {**TWO_RANKS, "workload": {"mode": "decode", "batch_size": 2, "sequence_length": 8, "cache_length": 10,
                                            "dtype": "f32"}}
        job = self.write("decode.json", json.dumps(decode))
        result = self.run_job(job, "--steps", "3")
        self.assertExit(result, 2)
        self.assertIn("--steps 3: after the 8 tokens of the prompt there is room for 2 steps", result.err)
        self.assertIn("workload.cache_length of 11", result.err)
        self.assertExit(self.run_job(job, "--steps", "2"), 0)
        result = self.run_job(job)  # the default of 4 is cut, and said to be
        self.assertExit(result, 0)
        self.assertIn("2 of 4 steps run", result.err)

    def test_steps_beyond_the_learned_positions(self):
        model = {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16, "vocab_size": 64}
        job = self.write("gpt2.json", json.dumps(
            {"model": model, "mesh": {"axes": {"tp": 1}},
             "workload": {"mode": "decode", "sequence_length": 14, "cache_length": 64, "dtype": "f32"}}))
        self.assertExit(self.run_job(job), 0)
        self.assertExit(self.run_job(job, "--steps", "3"), 2)

    def test_positions_that_stretch_rope(self):
        model = {**MODEL, "max_position_embeddings": 16, "rope_scaling": {"type": "dynamic", "factor": 2.0}}
        for workload in ({"mode": "decode"}, {"mode": "insert", "insert_length": 2}):
            job = self.write("rope.json", json.dumps({**TWO_RANKS, "model": model, "workload": {
                **workload, "batch_size": 1, "sequence_length": 12, "cache_length": 32, "dtype": "f32"}}))
            self.assertExit(self.run_job(job), 0)

    def test_reward_model(self):
        model = {"model_type": "gpt_neox_reward_model", "hidden_size": 64, "intermediate_size": 128,
                 "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 256, "torch_dtype": "float32"}
        for more in ({}, {"hidden_state_axis": "tp"}, {"hidden_state_axis": None, "sequence_axis": "tp"}):
            job = self.write("reward.json", json.dumps({**TWO_RANKS, "model": model, "partition_axis": {
                "hidden_state_axis": None, **more}}))
            result = self.run_job(job, "--steps", "1", "--format", "json")
            self.assertExit(result, 0)
            self.assertTrue(json.loads(result.out)["verify"]["passed"])

    def test_wrong_number_of_ranks(self):
        result = mpirun(3, "run", self.job, env=ROOT_ALLOWED)
        self.assertExit(result, 2)
        self.assertIn("the mesh has 2 devices, but 3 ranks were started", result.err)
        self.assertIn("mpirun -n 2 ", result.err)
        self.assertEqual(result.err.count("the mesh has"), 1)

    def test_findings(self):
        for launch in (self.run_job, lambda *words: mpirun(2, "run", *words, env=ROOT_ALLOWED)):
            result = launch(self.job, "--set", "mesh.axes.tp=3")
            self.assertExit(result, 1)
            self.assertEqual(result.err.count("num_attention_heads 8 is not a multiple"), 1, result)
            self.assertEqual(result.out, "")

    def test_what_cannot_be_read(self):
        self.assertExit(self.run_job(self.directory / "none.json"), 2)
        self.assertExit(self.run_job(self.write("a.json", "{")), 2)
        self.assertExit(mpirun(2, "run", self.directory / "none.json", env=ROOT_ALLOWED), 2)

    def test_standard_input(self):
        text = json.dumps(TWO_RANKS)
        self.assertExit(self.run_job("-", "--ranks", "2", "--steps", "1", stdin=text), 0)
        self.assertExit(mpirun(2, "run", "-", "--steps", "1", env=ROOT_ALLOWED, stdin=text), 0)
        self.assertExit(mpirun(2, "run", "-", env=ROOT_ALLOWED, stdin="{"), 2)

    def test_wrong_checkpoint(self):
        weights = self.directory / "model.safetensors"
        weights.write_bytes(safetensors({"model.embed_tokens.weight": [256, 64], "surprise": [2]}))
        for mode in ([], ["--format", "json"]):
            result = self.run_job(self.job, "--weights", weights, *mode)
            self.assertExit(result, 1)
            self.assertIn("[SP7001]", result.err)
        self.assertExit(self.run_job(self.job, "--weights", self.directory / "none"), 2)
        weights.write_bytes(b"\xff" * 16)
        self.assertIn(self.run_job(self.job, "--weights", weights).code, (1, 2))

    def test_wrong_tokens(self):
        tokens = self.write("tokens.json", json.dumps([[1, 2, 3, 4, 5, 6, 7, 999]]))
        result = self.run_job(self.job, "--tokens", tokens)
        self.assertExit(result, 1)
        self.assertIn("[SP7002]", result.err)

    def test_weights_survive_a_round_trip(self):
        self.assertExit(self.run_job(self.job, "--steps", "1", "--save-weights", self.directory / "saved"), 0)
        self.assertExit(self.run_job(self.job, "--steps", "1", "--weights", self.directory / "saved"), 0)

    def test_a_failing_rank_ends_all(self):
        """Only rank 0 writes the logits; the others must not wait for it for ever."""
        result = self.run_job(self.job, "--steps", "1", "--logits", self.directory / "none/logits.safetensors")
        self.assertIn(result.code, (2, 3), result)
        self.assertIn("logits", result.err)

    def test_result_file(self):
        target = self.directory / "result.json"
        result = self.run_job(self.job, "--steps", "1", "--format", "json", "-o", target)
        self.assertExit(result, 0)
        self.assertEqual(result.out, "")
        self.assertTrue(json.loads(target.read_text())["verify"]["passed"])
        result = self.run_job(self.job, "--steps", "1", "-o", self.directory / "none/result.txt")
        self.assertExit(result, 2)
        self.assertEqual(self.files(), ["result.json", "two.json"])

    def test_root_is_told_how(self):
        if os.geteuid() == 0:
            result = shardplan("run", self.job, env={"OMPI_ALLOW_RUN_AS_ROOT": ""})
            self.assertIn(result.code, (1, 2), result)

    def test_too_many_ranks(self):
        result = self.run_job(CONFIGS / "llama-3.1-405b.16384.json")
        self.assertExit(result, 2)
        self.assertIn("16384", result.err)


if __name__ == "__main__":
    unittest.main()
