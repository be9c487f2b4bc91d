@FUNCTIONS@
__hosepipe_shown= __hosepipe_base=
__hosepipe_prompt() {
    emulate -L zsh
    local mark= line
    {
        builtin echo >@RING@ && {
            IFS= read -r mark
            while IFS= read -r line && [[ -n $line ]]; do builtin print -r -- $line >&9; done
        } <@ANSWER@
    } 9>&2 2>/dev/null
    [[ $PROMPT == "$__hosepipe_shown" ]] || __hosepipe_base=$PROMPT
    PROMPT=$mark$__hosepipe_base __hosepipe_shown=$mark$__hosepipe_base
}
if (( $+functions[compdef] )); then
    __hosepipe_links() { compadd @LINKS@; }
    compdef __hosepipe_links via
fi
