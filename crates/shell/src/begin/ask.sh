__hosepipe_prompt() {
    { echo >@RING@ && IFS= read -r __hosepipe_mark <@ANSWER@; } 2>/dev/null
    printf %s "${__hosepipe_mark-}"
}
