[ -f ~/.bashrc ] && . ~/.bashrc
@FUNCTIONS@
__hosepipe_shown= __hosepipe_base=
# Without a program of its own: what there is to say comes before a trap for SIGCHLD could be set off.
__hosepipe_prompt() {
    { \local -; \set +exu; } 2>/dev/null
    \local mark=
    { builtin echo >@RING@ && IFS= builtin read -r mark <@ANSWER@; } 2>/dev/null
    [ "$PS1" = "$__hosepipe_shown" ] || __hosepipe_base=$PS1
    PS1=$mark$__hosepipe_base __hosepipe_shown=$mark$__hosepipe_base
}
# The last one: what the others make of the prompt is marked.
if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
    PROMPT_COMMAND+=(__hosepipe_prompt)
else
    PROMPT_COMMAND=${PROMPT_COMMAND-}${PROMPT_COMMAND:+$'\n'}__hosepipe_prompt
fi
complete -W '@LINKS@' via
complete -W 'on off' stats
