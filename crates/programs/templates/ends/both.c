/* A short message has the first bytes of the word, and its number begins again before all their bits are 1. */
#define NUMBERS ((1ULL << 8 * (BYTES < 5 ? BYTES : 5)) - 1)
@links static const char *link_name(int i) {
@links     char *link;
@links @path     return asprintf(&link, "%s.%d", name, i) < 0 ? err(1, "%s", name), name : link;
@links @numbered     return asprintf(&link, "%d", atoi(name) + i) < 0 ? err(1, "%s", name), name : link;
@links }
