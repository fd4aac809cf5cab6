#!/bin/sh
# Brings a tool of its own to the model and answers it. One JSON object a line, in and out.
# The host writes members in a fixed order, so plain sh can cut them out; other languages parse the line.
tool='{"type":"function","function":{"name":"get_weather","description":"Weather in a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}'

while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"hook.cancel"'*) continue ;;
    *'"method":"hook.before_llm"'*)
      tools=${line##*',"tools":['}
      tools=${tools%%'],"options":'*}
      result="{\"action\":\"modify\",\"request\":{\"tools\":[${tools:+$tools,}$tool]}}"
      ;;
    *'"method":"hook.before_tool"'*)
      result='{"action":"respond","result":{"for_llm":"Beijing: sunny, 15 °C, humidity 45 %"}}'
      ;;
    *) result='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
