__hosepipe_prompt() {
    { \echo >@RING@ && IFS= \read -r __hosepipe_mark <@ANSWER@; } 2>/dev/null
    \printf %s "${__hosepipe_mark-}"
}
# A shell that is started inside may inherit PS1, and not this variable: it asks nothing.
__hosepipe_prompt=
