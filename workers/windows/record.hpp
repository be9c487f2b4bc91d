// The record: hosepipe's JSON, schema hosepipe/1 (docs/RECORD.md).
#pragma once

#include "host.hpp"
#include "words.hpp"

// "windows-named-pipe:overlapped,threads=2,type=byte": options in alphabetical order, as hosepipe writes them.
std::string spec_of(const Case &wanted);

std::string record_json(const Options &options, const Host &host, const std::string &started,
                        const std::vector<Row> &rows, bool was_interrupted);
