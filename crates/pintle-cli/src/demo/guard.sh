#!/bin/sh
# Refuses forced pushes. It is asked only about the tool exec: its matcher says so.
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"hook.cancel"'*) continue ;;
    *'"method":"hook.before_tool"'*'git push --force'*)
      result='{"action":"deny_tool","reason":"a forced push rewrites what others have"}'
      ;;
    *) result='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
