# What hosepipe adds to this shell. Nothing of it is exported.
function __hosepipe; @HOSEPIPE@ __prompt @SOCKET@ $argv; end
function via; __hosepipe via $argv; end
function stats; __hosepipe stats $argv; end
function keep; __hosepipe keep $argv; end
function presets; __hosepipe presets $argv; end
function preset; set -l text (__hosepipe preset $argv); and eval $text; end
function compare; @HOSEPIPE@ compare --shell @SHELL@ $argv; end
function hosepipe_help; __hosepipe help; end
set -g __hosepipe_mark
function __hosepipe_prompt --on-event fish_prompt
    set -g __hosepipe_mark
    test -w @RING@; or return
    echo >@RING@
    read -g __hosepipe_mark <@ANSWER@
end
functions --copy fish_prompt __hosepipe_fish_prompt
function fish_prompt
    # First, because it may show the last command's status.
    set -l prompt (__hosepipe_fish_prompt)
    echo -n $__hosepipe_mark
    string join \n -- $prompt
end
complete --command via --no-files --arguments '@LINKS@'
complete --command stats --no-files --arguments 'on off'
