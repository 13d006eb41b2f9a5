"""Command lines that cannot be used: exit code 2, nothing on standard output, and what would work."""
import json
import os
import subprocess
import unittest

from command import JOB, PROGRAM, CommandTest, shardplan

WRONG = [
    # words, pieces of the message
    ([], ["subcommand"]),
    (["plam", JOB], ["there is no command 'plam'", "did you mean 'plan'?"]),
    (["vaildate", JOB], ["did you mean 'validate'?"]),
    (["nothing-like-it"], ["there is no command 'nothing-like-it'"]),
    (["plan"], ["job"]),
    (["plan", JOB, "--frmat", "json"], ["did you mean '--format'?"]),
    (["plan", JOB, "--format", "yaml"], ["--format takes text or json", "yaml"]),
    (["plan", JOB, "--format", "sarif"], ["--format takes text or json"]),
    (["plan", JOB, "--format", "text", "--format", "json"], ["only one --format"]),
    (["plan", JOB, "--color", "sometimes"], ["--color takes", "sometimes"]),
    (["plan", JOB, "--rank", "4"], ["--rank takes a rank of the mesh, 0 to 3"]),
    (["plan", JOB, "--rank", "-1"], ["--rank"]),
    (["plan", JOB, "--rank", "0x1"], ["--rank takes a whole number"]),
    (["plan", JOB, "--layers", "0"], ["--layers takes a whole number from 1"]),
    (["plan", JOB, "--ranks", "99999999999999999999"], ["--ranks takes a whole number"]),
    (["plan", JOB, "another.json"], ["another.json"]),
    (["plan", JOB, "--shards", "nothing_like_it"], ["no tensor is called 'nothing_like_it'", "such as model.embed"]),
    (["plan", JOB, "--shards", "self_attn.q_proj.weigth"], ["no tensor is called", "did you mean"]),
    (["plan", JOB, "--shards", ""], ["--shards takes the name of a tensor"]),
    (["plan", JOB, "--shards", "lm_head.weight", "--format", "json"], ["--rank and --shards answer in text only"]),
    (["plan", JOB, "--rank", "1", "--format", "text", "--format", "json=/dev/null"], ["answer in text only"]),
    (["plan", JOB, "-o", ""], ["-o: the name of the file is empty"]),
    (["plan", JOB, "--format", "json="], ["--format json=: the name of the file is missing"]),
    (["plan", JOB, "--format", "json=a", "-o", "b"], ["-o: every --format has a file"]),
    (["validate", JOB, "--format", "json=a", "--format", "sarif=a"], ["two formats for one file, 'a'"]),
    (["validate", JOB, "--format", "json=a", "--format", "sarif=./a"], ["two formats for one file, './a'"]),
    (["plan", JOB, "--format", "json", "--format", "text=-"], ["only one --format"]),
    (["plan", JOB, "--set", "x"], ["--set takes key.path=value", '"x"']),
    (["validate", JOB, "--set", "a..b=1"], ["--set takes key.path=value"]),
    (["plan", JOB, "--mesh", ""], ["--mesh takes axes"]),
    (["validate", JOB, "--explain", "SP4003"], ["--explain", "takes no files"]),
    (["run", JOB, "--kernels", "fast"], ["--kernels takes onednn or reference", "fast"]),
    (["run", JOB, "--seed", "1.5"], ["--seed takes a whole number"]),
    (["run", JOB, "--threads", "0"], ["--threads takes a whole number from 1"]),
    (["run", JOB, "--steps", ""], ["--steps"]),
    (["run", "-"], ["standard input", "--ranks"]),
    (["validate"], ["validate needs files"]),
    (["validate", JOB, "--format", "xml"], ["--format takes text, json, github, sarif or junit"]),
    (["validate", JOB, "--warn", "SP4004=loud"], ["--warn takes CODE=off"]),
    (["validate", JOB, "--warn", "SP4004"], ["--warn takes CODE=off"]),
    (["validate", JOB, "--warn", "SP9999=off"], ["there is no code 'SP9999'"]),
    (["validate", JOB, "--warn", "SP403=off"], ["did you mean SP4003?"]),
    (["validate", JOB, "--warn", "SP4003=off"], ["SP4003", "is always an error"]),
    (["validate", "--explain", "SP400"], ["there is no code 'SP400'", "did you mean"]),
    (["validate", "--explain", "nonsense"], ["codes look like SP4003"]),
    (["schema", "extra"], ["extra"]),
    (["version", "--format", "xml"], ["--format"]),
]


class Usage(CommandTest):
    def test_wrong_command_lines(self):
        for words, pieces in WRONG:
            with self.subTest(words=words):
                result = shardplan(*words)
                self.assertExit(result, 2)
                self.assertEqual(result.out, "")
                for piece in pieces:
                    self.assertIn(piece, result.err)
                self.assertLacks(result.err, "terminate called", "internal error")

    def test_help(self):
        for words in (["--help"], ["plan", "--help"], ["validate", "--help"]):
            result = shardplan(*words)
            self.assertExit(result, 0)
            self.assertEqual(result.err, "")
        self.assertIn("Exit codes: 0 fine; 1 findings", shardplan("--help").out)
        for command in ("plan", "run", "validate", "schema", "version"):
            self.assertIn(f"  {command} ", shardplan("--help").out)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_full_device(self):
        for words in (["--help"], ["--version"], ["version"], ["schema"], ["validate", JOB], ["plan", JOB],
                      ["validate", "--explain", "SP4003"]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 2)
                self.assertIn(b"standard output could not be written", done.stderr)

    def test_version(self):
        line = shardplan("--version")
        self.assertExit(line, 0)
        self.assertRegex(line.out, r"^shardplan \d+\.\d+\.\d+\n$")
        parsed = json.loads(shardplan("version", "--format", "json").out)
        self.assertEqual(f"shardplan {parsed['shardplan']}\n", line.out)
        self.assertIn("Open MPI", parsed["mpi"])
        self.assertIn("kernels", shardplan("version").out)


if __name__ == "__main__":
    unittest.main()
