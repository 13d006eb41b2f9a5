"""shardplan validate and schema: what is checked, the formats, the exit codes."""
import json
import os
import shutil
import unittest
import xml.etree.ElementTree

from command import CONFIGS, JOB, MODEL, PROGRAM, ROOT, CommandTest, launch, on_terminal, shardplan

GOOD = json.dumps({"model": MODEL, "mesh": {"axes": {"dp": 1, "tp": 2}},
                   "partition_axis": {"hidden_state_axis": None}})
BAD = GOOD.replace('"tp": 2', '"tp": 3')
BROKEN = '{"model": {"model_type": "llama"},\n "mesh": {"axes": {"tp": 1}\n'


class Files(CommandTest):
    def test_exit_codes(self):
        good, bad = self.write("good.json", GOOD), self.write("bad.json", BAD)
        broken, missing = self.write("broken.json", BROKEN), str(self.directory / "none.json")
        for words, code in (([good], 0), ([good, bad], 1), ([broken], 1), ([missing], 2), ([bad, missing], 2),
                            ([bad, "--exit-zero"], 0), ([missing, "--exit-zero"], 2), (["-q", good], 0)):
            with self.subTest(words=words):
                self.assertExit(shardplan("validate", *words), code)

    def test_every_file_is_reported(self):
        names = [self.write("b.json", BROKEN), self.write("a.json", BAD), str(self.directory / "c.json")]
        result = shardplan("validate", *names)
        for piece in ("[SP1001]", "[SP1002]", "[SP4003]", "3 files, "):
            self.assertIn(piece, result.out)
        heads = [line.split(":")[0] for line in result.out.splitlines() if ": error: " in line]
        self.assertEqual(heads, sorted(heads))
        self.assertEqual(result.err, "")

    def test_a_missing_model_is_a_finding(self):
        result = shardplan("validate", self.write("a.json", '{"model": "none.json", "mesh": {"axes": {"tp": 1}}}'))
        self.assertExit(result, 1)
        self.assertIn("a.json:1:11: error: cannot read", result.out)

    def test_a_shared_model_is_reported_once(self):
        self.write("m.json", json.dumps({**MODEL, "hidden_size": -64}))
        for name in ("a.json", "b.json"):
            self.write(name, '{"model": "m.json", "mesh": {"axes": {"tp": 1}}}')
        result = shardplan("validate", self.directory)
        self.assertExit(result, 1)
        self.assertEqual(result.out.count("m.json:1:"), 1, result)

    def test_directories(self):
        for name, text in (("jobs/a.json", GOOD), ("jobs/deep/b.json", GOOD), ("jobs/c.json", BROKEN),
                           ("package.json", '{"name": "x"}'), (".hidden/d.json", BAD), ("notes.txt", BAD),
                           ("models/config.json", json.dumps(MODEL))):
            self.write(name, text)
        result = shardplan("validate", self.directory, "--format", "json")
        self.assertExit(result, 1)
        report = json.loads(result.out)
        self.assertEqual([file["file"].removeprefix(f"{self.directory}/") for file in report["files"]],
                         ["jobs/a.json", "jobs/c.json", "jobs/deep/b.json"])
        self.assertEqual([file["file"].removeprefix(f"{self.directory}/") for file in report["skipped"]],
                         ["models/config.json", "package.json"])
        self.assertIn("package.json: not a job", result.err)
        self.assertLacks(shardplan("validate", "-q", self.directory).err, "skipped")
        with_mesh = json.loads(shardplan("validate", self.directory / "models", "--mesh", "tp=2", "--format", "json",
                                         "--set", "partition_axis.hidden_state_axis=null").out)
        self.assertEqual(with_mesh["summary"]["errors"], 0)
        self.assertEqual(len(with_mesh["files"]), 1)

    def test_notes_on_the_model_are_shown(self):
        text = {key: value for key, value in MODEL.items() if key != "torch_dtype"}
        name = self.write("a.json", json.dumps({"model": {"model_type": "llava_next", "text_config": text},
                                                "mesh": {"axes": {"tp": 1}}}))
        shown = shardplan("validate", name)
        self.assertExit(shown, 0)
        self.assertIn(": note: only the text decoder (text_config) is planned", shown.out)
        self.assertIn("1 file, 2 notes", shown.out)
        self.assertLacks(shown.out, "automatic provider")
        self.assertEqual(shardplan("validate", "-q", name).out, "")
        self.assertLacks(shardplan("validate", name, "--format", "github").out, "text decoder")

    def test_a_directory_without_jobs(self):
        self.write("package.json", "{}")
        result = shardplan("validate", self.directory)
        self.assertExit(result, 2)
        self.assertIn("no job was found", result.err)

    def test_a_file_named_twice_counts_once(self):
        good = self.write("good.json", GOOD)
        self.assertIn("1 file, ", shardplan("validate", good, good, self.directory).out)

    def test_an_unreadable_directory_does_not_hide_the_others(self):
        for name in ("u/a.json", "u/sub/b.json", "u/z/c.json"):
            self.write(name, GOOD)
        self.directory.chmod(0o755)
        (self.directory / "u/sub").chmod(0)
        try:
            words = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
            if words and (shutil.which("setpriv") is None or
                          launch([*words, PROGRAM, "--version"]).code != 0):
                self.skipTest("needs setpriv and a program that others may start")
            result = launch([*words, PROGRAM, "validate", "u"], cwd=self.directory)
        finally:
            (self.directory / "u/sub").chmod(0o755)
        self.assertExit(result, 2)
        self.assertIn("u/sub:1:1: error: cannot read directory 'u/sub'", result.out)
        self.assertIn("3 files, 1 error", result.out)

    def test_inputs_are_not_overwritten(self):
        job = self.write("j.json", json.dumps({"model": "m.json", "mesh": {"axes": {"tp": 1}}}))
        model = self.write("m.json", json.dumps(MODEL))
        (self.directory / "link.json").symlink_to("j.json")
        for command in ("validate", "plan"):
            for target in (job, self.directory / "link.json", model, f"{self.directory}/./j.json"):
                with self.subTest(command=command, target=target):
                    result = shardplan(command, job, "-o", target)
                    self.assertExit(result, 2)
                    self.assertIn("it is the input", result.err)
        self.assertIn('"mesh"', (self.directory / "j.json").read_text())
        self.assertIn('"model_type"', (self.directory / "m.json").read_text())

    def test_standard_output_by_other_names(self):
        job = self.write("j.json", GOOD)
        plain = shardplan("plan", job).out
        for words in (["-o", "-"], ["-o", "/dev/stdout"], ["--format", "text=-"]):
            with self.subTest(words=words):
                result = shardplan("plan", job, *words, cwd=self.directory)
                self.assertExit(result, 0)
                self.assertEqual(result.out, plain)
        self.assertEqual(self.files(), ["j.json"])

    def test_standard_input(self):
        self.assertExit(shardplan("validate", "-", stdin=GOOD), 0)
        result = shardplan("validate", "-", stdin=BROKEN)
        self.assertExit(result, 1)
        self.assertIn("<stdin>:", result.out)
        named = shardplan("validate", "-", "--stdin-filename", "x/y.json", "--format", "github", stdin=BROKEN)
        self.assertIn("file=x/y.json,", named.out)
        self.write("m/config.json", json.dumps(MODEL))
        text = '{"model": "m", "mesh": {"axes": {"tp": 1}}}'
        self.assertExit(shardplan("validate", "-", "--stdin-filename", self.directory / "a.json", stdin=text), 0)

    def test_shipped_jobs_and_model_configs(self):
        self.assertExit(shardplan("validate", CONFIGS), 0)
        self.assertExit(shardplan("validate", CONFIGS / "models/tiny-llama.json", "--mesh", "tp=2"), 0)
        self.assertExit(shardplan("validate", CONFIGS / "models/tiny-llama.json"), 1)


class Levels(CommandTest):
    """A dropped entry (SP4004) is a warning."""

    def setUp(self):
        super().setUp()
        job = json.loads(BAD)
        job["options"] = {"indivisible": "drop"}
        self.job = self.write("a.json", json.dumps(job))

    def test_warnings(self):
        for words, code, shown in (([], 0, "warning"), (["--strict"], 1, "warning"),
                                   (["--warn", "SP4004=error"], 1, "error"), (["-q"], 0, None),
                                   (["--strict", "--exit-zero"], 0, "warning")):
            with self.subTest(words=words):
                result = shardplan("validate", self.job, *words)
                self.assertExit(result, code)
                if shown:
                    self.assertRegex(result.out, rf"{shown}: .* \[SP4004\]")
                else:
                    self.assertLacks(result.out, "SP4004")

    def test_off(self):
        codes = {found["code"] for found in
                 json.loads(shardplan("validate", self.job, "--format", "json").out)["diagnostics"]
                 if found["severity"] == "warning"}
        self.assertIn("SP4004", codes)
        off = [word for code in sorted(codes) for word in ("--warn", f"{code}=off")]
        result = shardplan("validate", self.job, "--strict", *off)
        self.assertExit(result, 0)
        self.assertIn("1 file, no problems", result.out)

    def test_explain(self):
        result = shardplan("validate", "--explain", "SP4004")
        self.assertExit(result, 0)
        self.assertTrue(result.out.startswith("SP4004: "), result)
        self.assertIn("(warning)", result.out)
        self.assertEqual(json.loads(shardplan("validate", "--explain", "SP4003", "--format", "json").out)["code"],
                         "SP4003")


class Formats(CommandTest):
    def setUp(self):
        super().setUp()
        self.name = "odd name %,:&<>\"'\u00e4.json"
        self.path = self.write(self.name, BAD.replace('"dp": 1', '"d<&\\"\\n\\u001bp": 1'))

    def run_format(self, name):
        result = shardplan("validate", self.name, "--format", name, cwd=self.directory)
        self.assertExit(result, 1)
        self.assertRegex(result.err, r"^1 file, \d+ errors?")
        return result.out

    def test_json(self):
        report = json.loads(self.run_format("json"))
        self.assertEqual(report["files"][0]["file"], self.name)
        self.assertEqual(report["summary"]["errors"], report["files"][0]["errors"])

    def test_github(self):
        for line in self.run_format("github").splitlines():
            self.assertRegex(line, r"^::(error|warning) file=odd name %25%2C%3A&<>\"'\u00e4\.json,line=\d+,")

    def test_sarif(self):
        run = json.loads(self.run_format("sarif"))["runs"][0]
        for result in run["results"]:
            self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])
            self.assertEqual(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
                             "odd%20name%20%25%2C%3A%26%3C%3E%22%27%C3%A4.json")
            self.assertTrue(result["partialFingerprints"])
        absolute = shardplan("validate", self.path, "--format", "sarif", cwd=self.directory)
        self.assertEqual(json.loads(absolute.out)["runs"][0]["results"], run["results"])

    def test_junit(self):
        suites = xml.etree.ElementTree.fromstring(self.run_format("junit"))
        self.assertEqual((suites.tag, suites.get("tests"), suites.get("failures")), ("testsuites", "1", "1"))
        case = suites.find("testsuite/testcase")
        self.assertEqual(case.get("name"), self.name)
        self.assertIn("error: ", case.find("failure").text)

    def test_several_at_once(self):
        result = shardplan("validate", self.path, "--format", "text", "--format",
                           f"sarif={self.directory}/o.sarif", "--format", f"junit={self.directory}/o.xml")
        self.assertExit(result, 1)
        self.assertIn("1 file, ", result.out)
        json.loads((self.directory / "o.sarif").read_text())
        xml.etree.ElementTree.fromstring((self.directory / "o.xml").read_text())

    def test_a_file_that_cannot_be_written(self):
        result = shardplan("validate", self.path, "--format", "sarif=none/o.sarif", cwd=self.directory)
        self.assertExit(result, 2)
        self.assertEqual(self.files(), [self.name])

    def test_colour(self):
        self.assertIn("\x1b[", on_terminal("validate", self.path).out)
        self.assertLacks(on_terminal("validate", self.path, env={"NO_COLOR": "1"}).out, "\x1b")
        self.assertLacks(shardplan("validate", self.path).out, "\x1b")
        self.assertLacks(on_terminal("validate", self.path, "--format", "github").out.split("\n")[0], "\x1b")


class Schema(CommandTest):
    def test_printed_and_shipped(self):
        printed = shardplan("schema")
        self.assertExit(printed, 0)
        self.assertEqual(printed.out, (CONFIGS / "shardplan.schema.json").read_text())
        self.assertEqual(json.loads(printed.out)["$schema"], "http://json-schema.org/draft-07/schema#")

    def test_file(self):
        self.assertExit(shardplan("schema", "-o", self.directory / "s.json"), 0)
        self.assertEqual((self.directory / "s.json").read_text(), shardplan("schema").out)
        self.assertExit(shardplan("schema", "-o", self.directory / "none/s.json"), 2)


class Hook(CommandTest):
    def test_the_pattern_takes_jobs_and_leaves_other_files(self):
        import re
        text = (ROOT / ".pre-commit-hooks.yaml").read_text()
        pattern = re.compile(re.search(r"files: '(.*)'", text).group(1))
        exclude = re.compile(re.search(r"exclude: '(.*)'", text).group(1))

        def taken(name):
            return bool(pattern.search(name)) and not exclude.search(name)

        for job in CONFIGS.glob("*.json"):
            self.assertEqual(taken(f"configs/{job.name}"), job.name != "shardplan.schema.json")
        self.assertTrue(taken("a/b/llama.shard.json"))
        for name in ("package.json", "configs/models/llama.json", "configs/notes.txt"):
            self.assertFalse(taken(name), name)


if __name__ == "__main__":
    unittest.main()
