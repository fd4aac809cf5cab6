#!/bin/sh
# A process hook in plain sh: one JSON object a line, in and out. It refuses refunds of 13.
# The host always writes `jsonrpc`, `id`, `method`, `params` in this order, so cutting the line is safe.
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"hook.event"'* | *'"method":"hook.cancel"'*) continue ;;
    *'"method":"hook.before_tool"'*'"amount":13}'*) result='{"action":"deny_tool","reason":"13 is unlucky"}' ;;
    *) result='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
