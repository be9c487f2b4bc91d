// The study's 24 bytes: what a write is charged against the pipe's buffer, and what this system makes of it.
#pragma once

#include "host.hpp"
#include "words.hpp"

// Prints, on standard error, which slacks work and what follows from that.
void report_slack(const Host &host, const std::vector<Row> &rows);
