//! How an agent would start another one that no hook guards.

use crate::protects::ruled;

/// Texts, and whether they are refused.
const TEXTS: &[(&str, bool)] = &[
    ("claude --bare -p x", true),
    ("cd /tmp && claude --safe-mode -p x", true),
    ("claude -p x --setting-sources project", true),
    ("claude --setting-sources=project -p x", true),
    ("claude --settings '{\"disableAllHooks\":true}' -p x", true),
    ("CLAUDE_CONFIG_DIR=/tmp/q claude -p x", true),
    ("HOME=/tmp/x claude -p x", true),
    ("export HOME=/tmp/x; codex exec x", true),
    ("env HOME=/tmp/x gemini -p x", true),
    ("claude config set -g disableAllHooks true", true),
    ("npx @anthropic-ai/claude-code@latest --bare -p x", true),
    ("npx -y claude --bare", true),
    ("bash -c 'claude --bare -p x'", true),
    ("codex -c features.hooks=false exec x", true),
    ("codex -cfeatures.hooks=false exec x", true),
    ("codex exec --config 'features = { hooks = false }' x", true),
    ("codex features disable hooks", true),
    ("codex --disable hooks exec x", true),
    ("codex --disable=hooks exec x", true),
    ("CODEX_HOME=/tmp/x codex exec x", true),
    ("GEMINI_CLI_HOME=/tmp/x gemini -p x", true),
    ("COPILOT_HOME=/tmp/x copilot -p x", true),
    ("KIMI_CODE_HOME=/tmp/x kimi -p x", true),
    ("CLINE_DIR=/tmp/x cline x", true),
    ("XDG_CONFIG_HOME=/tmp/x opencode run x", true),
    ("opencode run --pure x", true),
    ("pi --no-extensions -p x", true),
    ("PI_CODING_AGENT_DIR=/tmp/x pi -p x", true),
    ("claude -p 'what does --bare do'", false),
    ("claude -p x --model y && claude mcp list", false),
    ("codex exec -c model=x 'fix the hooks'", false),
    ("git init --bare x && HOME=/tmp/x make", false),
    ("npx vite --bare && grep -- --bare claude", false),
    ("MY_HOME=/x claude -p y", false),
];

#[test]
fn no_agent_starts_one_that_is_not_guarded() {
    for host in ["claude", "codex", "pi"] {
        for (text, refused) in TEXTS {
            ruled(host, text, *refused);
        }
    }
}
