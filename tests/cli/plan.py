"""shardplan plan: exit codes, streams, files and colours."""
import json
import os
import stat
import unittest

from command import CONFIGS, JOB, MODEL, CommandTest, on_terminal, shardplan


class Plan(CommandTest):
    def test_text(self):
        result = shardplan("plan", JOB)
        self.assertExit(result, 0)
        self.assertEqual(result.err, "")
        self.assertIn("tp", result.out)
        self.assertLacks(result.out, "\x1b")

    def test_json(self):
        result = shardplan("plan", JOB, "--format", "json")
        self.assertExit(result, 0)
        self.assertIn("schema_version", json.loads(result.out))
        self.assertEqual(result.out, shardplan("plan", JOB, "--format", "json").out)

    def test_totals_of_all_chunks_and_micro_batches(self):
        def figures(mesh, workload):
            job = {"model": MODEL, "mesh": {"axes": mesh}, "partition_axis": {"hidden_state_axis": None},
                   "workload": {"batch_size": 4, "sequence_length": 64, **workload}}
            result = shardplan("plan", "-", stdin=json.dumps(job))
            self.assertExit(result, 0)
            return result.out

        chunks = figures({"tp": 2}, {"chunk_length": 16})
        self.assertIn("Collectives of one chunk", chunks)
        self.assertIn("all 4 chunks: 20 calls", chunks)  # 5 all-reduces in each
        self.assertIn("in all 4 chunks", chunks.split("Totals")[1])
        parts = figures({"pp": 2, "tp": 2}, {"micro_batches": 2})
        self.assertIn("all 2 micro-batches: 12 calls", parts)  # and what the first stage hands on
        self.assertLacks(figures({"tp": 2}, {}), "  all ")

    def test_every_shipped_job(self):
        for job in sorted(CONFIGS.glob("*.json")):
            if job.name != "shardplan.schema.json":
                with self.subTest(job=job.name):
                    self.assertExit(shardplan("plan", job), 0)

    def test_findings(self):
        result = shardplan("plan", JOB, "--mesh", "tp=3")
        self.assertExit(result, 1)
        self.assertEqual(result.out, "")
        self.assertIn("[SP4003]", result.err)
        parsed = json.loads(shardplan("plan", JOB, "--mesh", "tp=3", "--format", "json").out)
        self.assertIn("SP4003", {found["code"] for found in parsed["diagnostics"]})

    def test_what_cannot_be_read(self):
        for job, code in ((self.directory / "none.json", "SP1001"), (self.write("a.json", "{"), "SP1002"),
                          (self.write("b.json", b"\xff\xfe{\0}\0"), "SP1002"), (self.directory, "SP1001")):
            result = shardplan("plan", job)
            self.assertExit(result, 2)
            self.assertIn(f"[{code}]", result.err)

    def test_standard_input(self):
        job = {"model": MODEL, "mesh": {"axes": {"tp": 2}}, "partition_axis": {"hidden_state_axis": None}}
        self.assertExit(shardplan("plan", "-", stdin=json.dumps(job)), 0)
        result = shardplan("plan", "-", stdin='{"model": }')
        self.assertExit(result, 2)
        self.assertTrue(result.err.startswith("<stdin>:1:11: error: "), result.err)

    def test_output_file(self):
        target = self.directory / "plan.json"
        result = shardplan("plan", JOB, "--format", "json", "-o", target)
        self.assertExit(result, 0)
        self.assertEqual(result.out + result.err, "")
        json.loads(target.read_text())
        self.assertEqual(self.files(), ["plan.json"])
        result = shardplan("plan", JOB, "--format", "text", "--format", f"json={target}")
        self.assertExit(result, 0)
        self.assertIn("tp", result.out)
        json.loads(target.read_text())

    def test_output_that_cannot_be_written(self):
        self.write("file", "x")
        for target in ("missing/plan.txt", "file/plan.txt", "."):
            result = shardplan("plan", JOB, "-o", self.directory / target)
            self.assertExit(result, 2)
            self.assertIn("cannot write", result.err)
            self.assertEqual(self.files(), ["file"])

    def test_output_to_a_device_or_through_a_link(self):
        self.assertExit(shardplan("plan", JOB, "-o", "/dev/null"), 0)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        (self.directory / "link").symlink_to("target")
        self.assertExit(shardplan("plan", JOB, "-o", self.directory / "link"), 0)
        self.assertTrue((self.directory / "link").is_symlink())
        self.assertIn("tp", (self.directory / "target").read_text())
        self.assertExit(shardplan("schema", "-o", "/dev/full"), 2)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_questions(self):
        self.assertExit(shardplan("plan", JOB, "--rank", "3"), 0)
        shown = shardplan("plan", JOB, "--shards", "lm_head.weight")
        self.assertExit(shown, 0)
        self.assertLacks(shardplan("plan", JOB, "--shards", "lm_head.weight", "--ascii").out, "│", "─")

    def test_overrides(self):
        result = shardplan("plan", CONFIGS / "models/tiny-llama.json", "--mesh", "tp=2", "--set",
                           "partition_axis.hidden_state_axis=null", "--mode", "decode")
        self.assertExit(result, 0)
        self.assertExit(shardplan("plan", CONFIGS / "models/tiny-llama.json"), 1)
        result = shardplan("plan", JOB, "--set", "workload.batch=2")
        self.assertExit(result, 1)
        self.assertIn("<--set workload.batch>:1:1: error: ", result.err)

    def mesh_of(self, *words):
        result = shardplan("plan", JOB, *words)
        return [line for line in result.out.splitlines() if line.startswith("mesh ")] or result.err

    def test_number_of_devices(self):
        self.assertIn("tp=4 (4 devices)", self.mesh_of("--mesh", "tp=-1")[0])  # mesh.devices of the job
        self.assertIn("tp=8 (8 devices)", self.mesh_of("--mesh", "tp=-1", "--ranks", "8")[0])
        self.assertIn("tp=2 (2 devices)", self.mesh_of("--mesh", "tp=2")[0])
        self.assertIn("tp=4 (4 devices)", self.mesh_of("--set", "mesh.axes.fsdp=1", "--set", "mesh.axes.tp=-1")[0]
                      .replace("dp=1, fsdp=1, tp=4, sp=1", "tp=4"))
        self.assertIn("(4 devices)", self.mesh_of("--ranks", "4")[0])
        self.assertIn("[SP3003]", self.mesh_of("--ranks", "8"))
        self.assertIn("4 devices, but 8 are given", self.mesh_of("--ranks", "8"))
        self.assertExit(shardplan("validate", JOB, "--ranks", "8"), 1)
        self.assertExit(shardplan("validate", JOB, "--ranks", "4"), 0)

    def test_set_beside_a_short_form(self):
        self.write("model/config.json", json.dumps(MODEL))
        job = self.write("job.json", json.dumps({"model": "model", "mesh": {"axes": {"tp": 2}}, "backend": "fused",
                                                 "partition_axis": {"hidden_state_axis": None}}))
        result = shardplan("plan", job, "--set", "backend.provider=local", "--set", "model.num_hidden_layers=3")
        self.assertExit(result, 0)
        self.assertIn("3 layers", result.out)
        self.assertIn("asked for: local", result.out)
        result = shardplan("plan", job, "--set", "model.hidden_size=65")  # the other facts keep their own places
        self.assertExit(result, 1)
        self.assertIn(f"{self.directory}/model/config.json:1:", result.err)
        result = shardplan("plan", job, "--set", "model.intermediate_size=127")
        self.assertIn("intermediate_size 127 is not a multiple", result.err)
        self.write("model/config.json", "{")
        result = shardplan("plan", job, "--set", "model.num_hidden_layers=3")
        self.assertExit(result, 2)
        self.assertEqual(result.err.count("[SP1002]"), 1, result)


class Colour(CommandTest):
    def coloured(self, *words, **options):
        return "\x1b[" in on_terminal("plan", JOB, "--mesh", "tp=3", *words, **options).out

    def test_terminal(self):
        self.assertTrue(self.coloured())
        self.assertFalse(self.coloured(env={"NO_COLOR": "1"}))
        self.assertTrue(self.coloured(env={"NO_COLOR": ""}))
        self.assertFalse(self.coloured(env={"TERM": "dumb"}))
        self.assertFalse(self.coloured("--color", "never"))
        self.assertTrue(self.coloured("--color", "always", env={"NO_COLOR": "1"}))

    def test_pipe(self):
        self.assertLacks(shardplan("plan", JOB, "--mesh", "tp=3").err, "\x1b")
        self.assertIn("\x1b[", shardplan("plan", JOB, "--mesh", "tp=3", env={"FORCE_COLOR": "1"}).err)
        self.assertLacks(shardplan("plan", JOB, "--mesh", "tp=3", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).err,
                         "\x1b")
        self.assertIn("\x1b[", shardplan("plan", JOB, "--mesh", "tp=3", "--color", "always").err)
        self.assertLacks(shardplan("plan", JOB, "--color", "always", "-o", "/dev/null").out, "\x1b")


if __name__ == "__main__":
    unittest.main()
