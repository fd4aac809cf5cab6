"""A guard: sees every call of the tool `exec` before it runs, and refuses forced pushes.

Each line on standard input is one JSON object, and each answer is one line on standard output.
Print nothing else there; standard error is yours.
"""

import json
import re
import sys

# What must not happen. Change this, then the frames in test_guard.py.
FORCED = re.compile(r"\bgit\b.*\bpush\b.*(\s--force\b|\s-f\b|\s\+\S)", re.DOTALL)


def before_tool(params):
    """Rules on one call. `{}` lets it pass; `modify` and `respond` are possible, too."""
    command = params["arguments"].get("command", "")
    if FORCED.search(str(command)):
        return {"action": "deny_tool", "reason": "forced pushes are done by people"}
    return {}


# The tool stages come as a pair, so `after_tool` is asked as well; this guard has nothing to say there.
ANSWERS = {
    "hook.hello": lambda params: {"ok": True, "name": "guard"},
    "hook.before_tool": before_tool,
    "hook.after_tool": lambda params: {},
}


def main():
    for line in sys.stdin:
        try:
            message = json.loads(line)
            method = message["method"]
        except (ValueError, KeyError, TypeError) as error:
            print(f"skipped a line: {error}", file=sys.stderr)
            continue
        if "id" not in message:
            continue  # A notification: no answer is expected.
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            if method in ANSWERS:
                reply["result"] = ANSWERS[method](message.get("params", {}))
            else:
                reply["error"] = {"code": -32601, "message": f"unknown method {method}"}
        except Exception as error:  # The call is then refused, and the text says why.
            reply["error"] = {"code": -32603, "message": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
