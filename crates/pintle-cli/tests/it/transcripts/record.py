# Keeps what it is sent, line by line as it came, and what it answers: calls in `keep/NAME.calls`, events in
# `keep/NAME.events`. Each line of `NAME.answers` is used once: a method, a text that the call has to hold, and the
# answer as it is to stand on the wire, with tabs between.
import json
import sys

name = sys.argv[1]
answers = []
try:
    with open(name + ".answers", encoding="utf-8") as file:
        answers = [line.rstrip("\n").split("\t") for line in file]
except FileNotFoundError:
    pass
kept = {kind: open(f"keep/{name}.{kind}", "ab", buffering=0) for kind in ("calls", "events")}


def answer(line, method):
    for wanted in answers:
        if wanted[0] == method and wanted[1] in line:
            answers.remove(wanted)
            return wanted[2]
    return {"hello": '{"ok":true}', "approve_tool": '{"approved":true}'}.get(method, '{"action":"continue"}')


for raw in sys.stdin.buffer:
    line = raw.decode()
    message = json.loads(line)
    method = message["method"].removeprefix("hook.")
    kept["events" if method in ("event", "runtime_event") else "calls"].write(b"> " + raw)
    if "id" not in message:
        continue
    said = answer(line, method)
    if said == "(nothing)":
        kept["calls"].write(b"< (nothing)\n")
        continue
    if said.startswith("tools "):
        tools = json.dumps(message["params"]["tools"], ensure_ascii=False, separators=(",", ":"))
        tools = tools[:-1] + ("," if tools != "[]" else "") + said.removeprefix("tools ") + "]"
        said = '{"action":"modify","request":{"tools":' + tools + "}}"
    member = "error" if said.startswith('{"code"') else "result"
    reply = f'{{"jsonrpc":"2.0","id":{message["id"]},"{member}":{said}}}'
    if said.startswith("raw "):
        reply = said.removeprefix("raw ").replace("ID", str(message["id"]))
    kept["calls"].write(f"< {reply}\n".encode())
    sys.stdout.buffer.write(f"{reply}\n".encode())
    sys.stdout.buffer.flush()
