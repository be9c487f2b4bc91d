@ENV@
[ -z "${ENV-}" ] || eval ". \"$ENV\""
@FUNCTIONS@
@ASK@
PS1='$(__hosepipe_prompt)'${PS1-}
