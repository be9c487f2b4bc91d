# A compiler that refuses.
echo "worker.broken:3:14: error: expected a semicolon" >&2
exit 1
