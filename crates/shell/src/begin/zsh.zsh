emulate -L zsh
@FUNCTIONS@
__hosepipe_shown= __hosepipe_base=
__hosepipe_prompt() {
    emulate -L zsh
    local mark=
    { builtin echo >@RING@ && IFS= read -r mark <@ANSWER@; } 2>/dev/null
    [[ $PROMPT == "$__hosepipe_shown" ]] || __hosepipe_base=$PROMPT
    PROMPT=$mark$__hosepipe_base __hosepipe_shown=$mark$__hosepipe_base
}
if (( $+functions[compdef] )); then
    __hosepipe_links() { compadd @LINKS@; }
    compdef __hosepipe_links via
fi
