/** What stands on the disk beside a configuration, where several journeys need the same. */

/** A skill `careful` that says `text` behind the results of `tools`, for good. */
export function withSkill(text: string, tools: readonly string[]): Record<string, string> {
  const hook = { name: "reminder", timing: "after_tool_call", role: "system", file: "reminder.md", tool_filter: tools, persistent: true };
  return {
    "skills/careful/SKILL.md": "---\nname: careful\ndescription: Be careful.\n---\nBe careful.\n",
    "skills/careful/hooks/reminder.md": text,
    "skills/careful/hooks/hooks.json": JSON.stringify({ hooks: [hook] }),
  };
}

/** A hook of the configuration that answers everything with yes. */
export const SHAKES = `import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}), flush=True)
`;
