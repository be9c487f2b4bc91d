# A compiler that hangs, with a child of its own; the argument marks both.
sh -c 'sleep 1000; :' "$0"
