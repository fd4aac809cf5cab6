#!/bin/sh
# Masks tokens in what tools return, before the model or anybody else reads it.
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%,*}
  result='{}'
  case $line in
    *'"method":"hook.cancel"'*) continue ;;
    *'"method":"hook.after_tool"'*'token='*)
      output=${line#*',"result":'}
      output=${output%',"duration":'*}
      output=$(printf '%s' "$output" | sed 's/token=[A-Za-z0-9_]*/token=[hidden]/g')
      result="{\"action\":\"modify\",\"result\":{\"result\":$output}}"
      ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
