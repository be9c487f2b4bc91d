# As yash does: the first of these that exists. (Older versions read only `~/.yashrc`.)
if [ -n "${XDG_CONFIG_HOME-}" ] && [ -r "$XDG_CONFIG_HOME/yash/rc" ]; then . "$XDG_CONFIG_HOME/yash/rc"
elif [ -r ~/.config/yash/rc ]; then . ~/.config/yash/rc
elif [ -r ~/.yashrc ]; then . ~/.yashrc
else command . --autoload --no-alias initialization/default 2>/dev/null
fi
case $- in *a*) set +a -- a ;; esac
@FUNCTIONS@
@ASK@
PS1='${__hosepipe_prompt+$({ __hosepipe_prompt; } 2>/dev/null)}'${PS1-}
[ -z "${YASH_PS1+set}" ] || YASH_PS1='${__hosepipe_prompt+$({ __hosepipe_prompt; } 2>/dev/null)}'$YASH_PS1
set ${1:+"-$1"} --
