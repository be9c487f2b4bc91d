// By how much a pipe's buffer must exceed the block (the slack; 24 bytes in the study), and whether this system charges a
// write for more than its data.
#pragma once

#include "host.hpp"
#include "words.hpp"

// Prints on standard error which slacks work, and the conclusion.
void report_slack(const Host &host, const std::vector<Row> &rows);
