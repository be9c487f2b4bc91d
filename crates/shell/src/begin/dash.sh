@ENV@
if [ -n "${ENV-}" ]; then
    eval "__hosepipe_env=\"$ENV\""
    # Without a slash `.` would search PATH.
    case $__hosepipe_env in */*) ;; *) __hosepipe_env=./$__hosepipe_env ;; esac
    [ ! -r "$__hosepipe_env" ] || . "$__hosepipe_env"
    unset __hosepipe_env
fi
case $- in *a*) set +a -- a ;; esac
@FUNCTIONS@
@ASK@
PS1='${__hosepipe_prompt+$({ __hosepipe_prompt; } 2>/dev/null)}'${PS1-}
set ${1:+"-$1"} --
