__hosepipe_prompt() {
    {
        echo >@RING@ && {
            IFS= read -r __hosepipe_mark
            while IFS= read -r __hosepipe_line && [ -n "$__hosepipe_line" ]; do printf '%s\n' "$__hosepipe_line" >&9; done
        } <@ANSWER@
    } 9>&2 2>/dev/null
    printf %s "${__hosepipe_mark-}"
}
