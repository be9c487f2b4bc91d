[ -f ~/.bashrc ] && . ~/.bashrc
# What the user's file has set is set again at the end: nothing of this is exported, traced or shown.
{ \set +aexuv -- "${-//[^aexuv]/}"; } 2</dev/null
@FUNCTIONS@
# Without a program of its own: what there is to say comes before a trap for SIGCHLD could be set off.
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
# The last one: what the others make of the prompt is marked. A shell that is started inside may inherit both variables: it finds
# nothing to run or to show. (`2<`, because a restricted shell refuses `2>`.)
__hosepipe_prompt=__hosepipe_prompt
if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
    PROMPT_COMMAND+=('{ ${__hosepipe_prompt+"$__hosepipe_prompt"}; } 2</dev/null')
else
    PROMPT_COMMAND=${PROMPT_COMMAND-}${PROMPT_COMMAND:+$'\n'}'{ ${__hosepipe_prompt+"$__hosepipe_prompt"}; } 2</dev/null'
fi
complete -W '@LINKS@' via
complete -W 'on off' stats
\set ${1:+"-$1"} --
