#!/bin/sh
# A guard: sees every call of the tool `exec` before it runs, and refuses forced pushes.
#
# Each line on standard input is one JSON object, and each answer is one line on standard output.
# Print nothing else there; standard error is yours.
#
# The shell reads no JSON, so this looks at the text of the arguments and refuses too much rather than too little.
# A guard that looks closer is better written in another language: pintle hooks new NAME --lang python

# Rules on one call; $1 is the JSON text that follows `"arguments":`. Change this, then test_guard.sh.
before_tool() {
    case $1 in
    *git*push*' --force'* | *git*push*' -f'* | *git*push*' +'*)
        printf '{"action":"deny_tool","reason":"forced pushes are done by people"}'
        ;;
    *) printf '{}' ;;
    esac
}

# Without -r and an empty IFS, `read` would change the line.
while IFS= read -r line || [ -n "$line" ]; do
    # Every call begins like this, id first. What does not is a notification: no answer is expected.
    case $line in
    '{"jsonrpc":"2.0","id":'*'"method":"hook.'*) ;;
    *) continue ;;
    esac
    id=${line#'{"jsonrpc":"2.0","id":'}
    id=${id%%,*}
    method=${line#*'"method":"hook.'}
    method=${method%%'"'*}
    case $method in
    hello) answer='"result":{"ok":true,"name":"guard"}' ;;
    before_tool)
        # The call's own arguments are the first member of that name, and the id of the call follows them.
        arguments=${line#*'"arguments":'}
        answer='"result":'$(before_tool "${arguments%'"tool_call_id":'*}")
        ;;
    # The tool stages come as a pair; this guard has nothing to say to the second one.
    after_tool) answer='"result":{}' ;;
    *) answer='"error":{"code":-32601,"message":"unknown method"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
