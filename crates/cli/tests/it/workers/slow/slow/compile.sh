# A compiler that hangs, with a child of its own, and one in another session; the argument marks all.
mktemp >/dev/null
setsid sh -c 'sleep 1000; :' "$0" &
sh -c 'sleep 1000; :' "$0"
