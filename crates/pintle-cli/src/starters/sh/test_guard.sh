#!/bin/sh
# Pipes recorded frames into the guard and checks its replies. Run it with: sh test_guard.sh

set -u
cd -- "$(dirname -- "$0")" || exit 1
failed=0

# Compares what came ($2) with what should have come ($3).
check() {
    if [ "$2" != "$3" ]; then
        printf 'FAILED %s\n  expected %s\n  got      %s\n' "$1" "$3" "$2"
        failed=1
    fi
}

deny='{"action":"deny_tool","reason":"forced pushes are done by people"}'

# The guard has to end when its input ends.
check 'recorded frames' "$(sh guard.sh <frames.jsonl)" \
    '{"jsonrpc":"2.0","id":1,"result":{"ok":true,"name":"guard"}}
{"jsonrpc":"2.0","id":2,"result":'"$deny"'}
{"jsonrpc":"2.0","id":3,"result":{}}
{"jsonrpc":"2.0","id":4,"result":{}}
{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"unknown method"}}'

# What the guard answers to a call of exec with the command $1, given as JSON text.
ask() {
    printf '{"jsonrpc":"2.0","id":7,"method":"hook.before_tool","params":{"tool":"exec",%s}}\n' \
        "\"arguments\":{\"command\":$1},\"tool_call_id\":\"c1\",\"raw_tool\":\"exec\"" | sh guard.sh
}

for command in '"git push -f"' '"git -C a push origin --force"' '"git push origin +main"' '"echo \"a\"; git push -f"'; do
    check "$command" "$(ask "$command")" '{"jsonrpc":"2.0","id":7,"result":'"$deny"'}'
done
for command in '"git push"' '"git push origin fix-force"' '"ls -f"' '"%s \\n `id` $(id)"'; do
    check "$command" "$(ask "$command")" '{"jsonrpc":"2.0","id":7,"result":{}}'
done

[ "$failed" = 0 ] && echo 'all passed'
exit "$failed"
