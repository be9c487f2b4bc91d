__hosepipe_prompt() {
    { \echo >@RING@ && IFS= \read -r __hosepipe_mark <@ANSWER@; } 2>/dev/null
    \printf %s "${__hosepipe_mark-}"
}
# A nested shell may inherit PS1, but not this variable: it does not ask.
__hosepipe_prompt=
