# A process hook that keeps its environment, then all that it is sent.
tr '\0' '\n' </proc/$$/environ >"keep/$1.env"
exec python3 record.py "$1"
