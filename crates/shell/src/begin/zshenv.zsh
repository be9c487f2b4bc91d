@ZDOTDIR@
[[ ! -r ${ZDOTDIR:-$HOME}/.zshenv ]] || . ${ZDOTDIR:-$HOME}/.zshenv
# The user's other files are read between this one and the first prompt.
__hosepipe_begin() {
    precmd_functions=(${precmd_functions:#__hosepipe_begin} __hosepipe_prompt)
    unfunction __hosepipe_begin
    . @REST@
    __hosepipe_prompt
}
typeset -ga precmd_functions
[[ ! -o interactive ]] || precmd_functions+=(__hosepipe_begin)
