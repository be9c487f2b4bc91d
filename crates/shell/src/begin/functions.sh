# What hosepipe adds to this shell. Nothing of it is exported.
unalias via stats keep compare presets preset hosepipe_help 2>/dev/null || :
__hosepipe() { @HOSEPIPE@ __prompt @SOCKET@ "$@"; }
via() { __hosepipe via "$@"; }
stats() { __hosepipe stats "$@"; }
keep() { __hosepipe keep "$@"; }
presets() { __hosepipe presets "$@"; }
preset() { eval "$(__hosepipe preset "$@" || echo return 1)"; }
compare() { @HOSEPIPE@ compare --shell @SHELL@ "$@"; }
hosepipe_help() { __hosepipe help; }
