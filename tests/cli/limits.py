"""Jobs that are absurd, many of them valid: each is answered at once, without overflow and without a crash.

An answer takes well below a second; the limit here is only that of a program that hangs."""
import json
import unittest

from command import MODEL, CommandTest, shardplan


def job(model=None, axes=None, **sections):
    return {"model": {**MODEL, **(model or {})}, "mesh": {"axes": axes or {"dp": 1, "tp": 2}},
            "partition_axis": {"hidden_state_axis": None}, **sections}


FIFTEEN_AXES = {f"a{i}": 2 for i in range(15)}
WIDE = {"hidden_size": 2**40, "intermediate_size": 2**20, "head_dim": 128}

# name, job, exit code of plan and validate (a pair where they differ; None: 0 or 1, whatever the planner says)
JOBS = [
    ("10,000 layers", job({"num_hidden_layers": 10_000}), 0),
    ("too many layers", job({"num_hidden_layers": 2**40}), 1),
    ("hidden 2^40", job(WIDE, {"tp": 8}), None),
    ("hidden 2^40, everything large", job({**WIDE, "intermediate_size": 2**42, "vocab_size": 2**40}), 1),
    ("2^31 devices", job(axes={"dp": 2**30, "tp": 2}, workload={"batch_size": 2**30}), 0),
    ("2^40 devices", job(axes={"dp": 2**39, "tp": 2}, workload={"batch_size": 2**39}), 0),
    ("more than 2^40 devices", job(axes={"dp": 2**40, "tp": 2}), 1),
    ("2^40 sequences of 2^40 tokens", job(workload={"batch_size": 2**40, "sequence_length": 2**40}), 1),
    ("15 axes, one dimension", job({"num_attention_heads": 2**15, "num_key_value_heads": 2**15, "head_dim": 2,
                                    "hidden_size": 2**15, "intermediate_size": 2**15, "vocab_size": 2**15},
                                   FIFTEEN_AXES, partition_axis={"head_axis": list(FIFTEEN_AXES),
                                                                 "hidden_state_axis": None}), None),
    ("15 axes over five dimensions",
     job({"hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 4096,
          "vocab_size": 4096}, FIFTEEN_AXES,
         partition_axis={"batch_axis": ["a0", "a1", "a2"], "sequence_axis": ["a3", "a4", "a5"],
                         "query_sequence_axis": ["a6", "a7"], "key_sequence_axis": ["a8", "a9"],
                         "head_axis": ["a10", "a11", "a12"], "hidden_state_axis": ["a13", "a14"],
                         "weight_storage_axis": ["a0", "a3", "a6"]},
         workload={"batch_size": 8, "sequence_length": 64}), None),
    ("16 axes", job(axes={f"a{i}": 2 for i in range(16)}), 1),
    ("100,000 axes", job(axes={f"a{i}": 1 for i in range(100_000)}), 1),
    ("1,000 rules", job(partition_rules=[[f"layer{i}x", [None]] for i in range(999)] + [[".*", []]]), 0),
    ("1,000 rules that tell 10,000 layers apart", job({"num_hidden_layers": 10_000}, partition_rules=[
        [rf"layers\.{i}\.mlp", [None]] for i in range(999)] + [[".*", []]]), 1),
    ("1,000 rules that tell 80 layers apart", job({"num_hidden_layers": 80}, partition_rules=[
        [rf"layers\.{i % 80}\.mlp.*{i}", [None]] for i in range(999)] + [[".*", []]]), 0),
    ("100,000 rules", job(partition_rules=[[f"layer{i}x", [None]] for i in range(100_000)] + [[".*", []]]), (2, 1)),
    ("1,000 bad rules", job(partition_rules=[["(", []]] * 1000), 1),
    ("a rule of 100,000 characters", job(partition_rules=[["a" * 100_000, []]]), 1),
    ("a rule that backtracks", job(partition_rules=[["(a*)*(.*)*(.*.*)*b$", []], [".*", []]]), 0),
    ("a spec of 100,000 entries", job(partition_rules=[[".*", [None] * 100_000]]), 1),
    ("100,000 unknown keys", job(workload={f"key{i}": i for i in range(100_000)}), 1),
    ("100,000 unknown keys of a model", job({f"key{i}": i for i in range(100_000)}), 0),
    ("a long name", job(axes={"x" * 1_000_000: 1, "tp": 2}), 1),
    ("100 bytes of name", job(axes={"\u00e4" * 50: 1, "tp": 2}), 0),
    ("long strings", job(workload={"mode": "m" * 5_000_000}), 1),
    ("a model of another kind", job({"model_type": "t" * 1_000_000}), 1),
    ("numbers beyond 64 bits", job({"hidden_size": 10**400}), 1),
    ("a negative number of layers", job({"num_hidden_layers": -(2**63)}), 1),
]

# name, text, exit code of plan, exit code of validate
TEXTS = [
    ("deep nesting", "[" * 1_000_000, 2, 1),
    ("deep objects", '{"model":' * 200_000, 2, 1),
    ("deep and closed", '{"model": ' + "[" * 100 + "]" * 100 + "}", 2, 1),
    ("a million values", "[" + "0," * 1_500_000 + "0]", 2, 1),
    ("100,000 equal keys", "{" + ",".join(['"model": 1'] * 100_000) + "}", 1, 1),
    ("100,000 empty lines", "\n" * 100_000 + "{", 2, 1),
    ("one string", '"' + "s" * 5_000_000 + '"', 1, 1),
    ("no end of a string", '{"model": "' + "s" * 5_000_000, 2, 1),
    ("NUL", '{"model": "\\u0000"}', 2, 1),
    ("more bytes than the limit", " " * (17 << 20), 2, None),
]


class Limits(CommandTest):
    def check(self, name, text, plan_code, validate_code):
        path = self.write("job.json", text)
        for command, code in (("plan", plan_code), ("validate", validate_code)):
            with self.subTest(job=name, command=command):
                result = shardplan(command, path)
                allowed = (code,) if code is not None else (0, 1, 2)
                self.assertIn(result.code, allowed, repr(result)[:2000])
                self.assertLacks(result.err, "internal error", "terminate")

    def test_jobs(self):
        for name, value, code in JOBS:
            plan_code, validate_code = code if isinstance(code, tuple) else (code, code)
            self.check(name, json.dumps(value, indent=1), plan_code, validate_code)

    def test_texts(self):
        for name, text, plan_code, validate_code in TEXTS:
            self.check(name, text, plan_code, validate_code)


if __name__ == "__main__":
    unittest.main()
