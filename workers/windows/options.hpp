// The command line: words in, options out.
#pragma once

#include <stdexcept>

#include "words.hpp"

// A sentence for the user; the exit status is 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Asked for with --help: not an error.
struct HelpWanted {};

extern const char *const HELP;

// Throws UsageError or HelpWanted.
Options read_options(int argc, wchar_t **argv);

std::string utf8(const wchar_t *text);
