if [ -r ~/.yashrc ]; then . ~/.yashrc; else . --autoload --no-alias initialization/default; fi
@FUNCTIONS@
@ASK@
PS1='$(__hosepipe_prompt)'${PS1-}
[ -z "${YASH_PS1+set}" ] || YASH_PS1='$(__hosepipe_prompt)'$YASH_PS1
