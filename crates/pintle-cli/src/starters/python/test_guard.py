"""Pipes recorded frames into the guard and checks its replies. Run it with: python3 test_guard.py"""

import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent


def replies(frames):
    """What the guard answers to `frames`, by id. It has to end when its input ends."""
    guard = subprocess.run(
        [sys.executable, HERE / "guard.py"], input=frames, capture_output=True, text=True, timeout=30, check=True
    )
    return {reply["id"]: reply for reply in map(json.loads, guard.stdout.splitlines())}


def call(number, **arguments):
    """A frame that asks about a call of `exec`."""
    params = {"tool": "exec", "arguments": arguments, "tool_call_id": "c1", "raw_tool": "exec"}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "hook.before_tool", "params": params}) + "\n"


class Guard(unittest.TestCase):
    def test_recorded_frames(self):
        got = replies((HERE / "frames.jsonl").read_text())
        self.assertEqual(sorted(got), [1, 2, 3, 4, 5])
        self.assertTrue(got[1]["result"]["ok"])
        self.assertEqual(got[2]["result"], {"action": "deny_tool", "reason": "forced pushes are done by people"})
        self.assertEqual(got[3]["result"], {})
        self.assertEqual(got[4]["result"], {})
        self.assertEqual(got[5]["error"]["code"], -32601)

    def test_more_calls(self):
        refused = ["git push -f", "git -C a push origin --force", "git push origin +main", "true; git push --force"]
        passed = ["git push", "git push origin fix-force", "ls -f", ""]
        frames = "".join(call(number, command=command) for number, command in enumerate(refused + passed, 1))
        got = replies("no JSON\n" + frames + call(99))
        for number, command in enumerate(refused + passed, 1):
            self.assertEqual("action" in got[number]["result"], command in refused, command)
        self.assertEqual(got[99]["result"], {})


if __name__ == "__main__":
    unittest.main()
