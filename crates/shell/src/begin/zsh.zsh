\builtin emulate -L zsh
\builtin setopt no_aliases no_all_export no_xtrace no_verbose
@FUNCTIONS@
__hosepipe_shown= __hosepipe_base=
__hosepipe_prompt() {
    { builtin emulate -L zsh && builtin trap - DEBUG && builtin setopt no_all_export no_xtrace no_verbose } 2>/dev/null
    local mark=
    { builtin echo >@RING@ && IFS= read -r mark <@ANSWER@ } 2>/dev/null
    # A nested shell must not inherit the mark.
    [[ ${(t)PS1}${(t)PROMPT}${(t)prompt} != *export* ]] || mark=
    [[ $PROMPT == "$__hosepipe_shown" ]] || __hosepipe_base=$PROMPT
    PROMPT=$mark$__hosepipe_base __hosepipe_shown=$mark$__hosepipe_base
}
if (( $+functions[compdef] )); then
    __hosepipe_links() { compadd @LINKS@; }
    compdef __hosepipe_links via
fi
