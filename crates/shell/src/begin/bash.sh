[ -f ~/.bashrc ] && . ~/.bashrc
# Nothing of this is exported, traced or shown: the user's options are off until the last line.
{ \set +aexuv -- "${-//[^aexuv]/}"; } 2</dev/null
@FUNCTIONS@
# Only builtins: a child would run the user's trap for SIGCHLD.
__hosepipe_prompt() {
    \local -
    \set +aexuv
    __hosepipe_mark=
    # A restricted shell writes to no path.
    if [[ $- != *r* ]]; then
        { \builtin echo >@RING@ && IFS= \builtin read -r __hosepipe_mark <@ANSWER@; } 2>/dev/null
    fi
    [[ $PS1 == '${__hosepipe_mark-}'* ]] || PS1='${__hosepipe_mark-}'$PS1
    shopt -q promptvars || PS1=${PS1#'${__hosepipe_mark-}'}
}
# Runs last, so that the mark is put before the prompt that the user's commands made. A nested shell may inherit
# PROMPT_COMMAND and PS1: its variables are unset, so it runs and shows nothing. (A restricted shell refuses `2>`, but not `2<`.)
__hosepipe_prompt=__hosepipe_prompt
if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
    PROMPT_COMMAND+=('{ ${__hosepipe_prompt+"$__hosepipe_prompt"}; } 2</dev/null')
else
    PROMPT_COMMAND=${PROMPT_COMMAND-}${PROMPT_COMMAND:+$'\n'}'{ ${__hosepipe_prompt+"$__hosepipe_prompt"}; } 2</dev/null'
fi
complete -W '@LINKS@' via
complete -W 'on off' stats
\set ${1:+"-$1"} --
