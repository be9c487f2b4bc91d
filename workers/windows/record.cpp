#include "record.hpp"

#include <charconv>

#include "summary.hpp"

namespace {

// The version of hosepipe that the record names.
constexpr const char *VERSION = "0.1.0";

// The fields of a record for limits of Unix, which Windows does not have.
constexpr const char *UNIX_LIMITS[] = {"pipe_max_size",  "pipe_user_pages_soft", "msgmax",         "msgmnb",
                                       "msgmni",         "mq_msg_max",           "mq_msgsize_max", "mq_queues_max",
                                       "rlimit_msgqueue", "rlimit_memlock",      "rlimit_nofile",  "wmem_max",
                                       "rmem_max"};

// Writes JSON with its commas and line ends, indented by two spaces for each level.
class Json {
  public:
    Json &object() { return open('{'); }
    Json &array() { return open('['); }
    Json &end() {
        const char closing = levels.back();
        levels.pop_back();
        if (!first) new_line();
        first = false;
        text += closing;
        return *this;
    }
    Json &key(const char *name) {
        item();
        quoted(name);
        text += ": ";
        after_key = true;
        return *this;
    }
    Json &string(const std::string &value) {
        item();
        quoted(value);
        return *this;
    }
    Json &optional(const std::optional<std::string> &value) { return value ? string(*value) : null(); }
    Json &number(std::uint64_t value) { return literal(std::to_string(value)); }
    Json &number(double value) {
        // The shortest text that reads back as the same number.
        char digits[32];
        const auto result = std::to_chars(digits, digits + sizeof digits, value);
        return literal(std::string(digits, result.ptr));
    }
    Json &boolean(bool value) { return literal(value ? "true" : "false"); }
    Json &null() { return literal("null"); }
    std::string done() { return text + "\n"; }

  private:
    Json &open(char bracket) {
        item();
        text += bracket;
        levels.push_back(bracket == '{' ? '}' : ']');
        first = true;
        return *this;
    }
    Json &literal(const std::string &value) {
        item();
        text += value;
        return *this;
    }
    // Called before every key and value: begins a new line, after a comma if needed; nothing between a key and its value.
    void item() {
        if (after_key) {
            after_key = false;
            return;
        }
        if (levels.empty()) return;
        if (!first) text += ',';
        first = false;
        new_line();
    }
    void new_line() {
        text += '\n';
        text.append(2 * levels.size(), ' ');
    }
    void quoted(const std::string &value) {
        constexpr char HEX[] = "0123456789abcdef";
        text += '"';
        for (const char letter : value) {
            const auto byte = static_cast<unsigned char>(letter);
            if (letter == '"' || letter == '\\') text += '\\';
            if (byte < 0x20) {
                text += std::string("\\u00") + HEX[byte >> 4] + HEX[byte & 15];
            } else {
                text += letter;
            }
        }
        text += '"';
    }

    std::string text, levels;
    bool first = true, after_key = false;
};

void write_host(Json &json, const Host &host) {
    json.key("host").object();
    json.key("kernel").string(host.kernel);
    json.key("architecture").string("x86_64");
    json.key("cpu_model").string(host.cpu_model);
    json.key("cpus").array();
    for (const Processor &processor : host.processors) {
        json.object().key("id").number(std::uint64_t{processor.id});
        json.key("core").number(std::uint64_t{processor.core});
        json.key("package").number(std::uint64_t{processor.package});
        json.key("node").number(std::uint64_t{processor.node}).end();
    }
    json.end().key("caches_bytes").object();
    for (const auto &[name, bytes] : host.caches_bytes) json.key(name.c_str()).number(bytes);
    json.end();
    json.key("memory_bytes").number(host.memory_bytes);
    json.key("hypervisor").optional(host.hypervisor);
    json.key("governor").null();
    json.key("mitigations").object().end();
    json.key("transparent_huge_pages").null();
    json.key("shmem_huge_pages").null();
    json.key("load_average_1m").null();
    for (const char *limit : UNIX_LIMITS) json.key(limit).null();
    json.end();
}

// Windows does not report the context switches and page faults of a thread: they are 0, because a record has no null for them.
void write_usage(Json &json, const EndUsage &usage) {
    json.key("syscalls").number(usage.syscalls);
    json.key("voluntary_switches").number(std::uint64_t{0});
    json.key("involuntary_switches").number(std::uint64_t{0});
    json.key("user_ns").number(usage.user_ns);
    json.key("system_ns").number(usage.system_ns);
}

void write_sample(Json &json, const Sample &sample) {
    EndUsage sum;
    for (const EndUsage &end : sample.ends) {
        sum.syscalls += end.syscalls;
        sum.user_ns += end.user_ns;
        sum.system_ns += end.system_ns;
    }
    json.object();
    json.key("round").number(std::uint64_t{sample.round});
    json.key("elapsed_ns").number(sample.elapsed_ns);
    json.key("setup_ns").number(sample.setup_ns);
    json.key("bytes").number(sample.bytes);
    json.key("messages").number(sample.messages);
    json.key("checksum").optional(sample.checksum);
    write_usage(json, sum);
    json.key("ends").array();
    for (const EndUsage &end : sample.ends) {
        json.object();
        write_usage(json, end);
        json.key("minor_faults").number(std::uint64_t{0});
        json.key("blocks_stored").number(std::uint64_t{0});
        json.end();
    }
    json.end().key("latency_histogram").null();
    json.end();
}

void write_summary(Json &json, const std::optional<Summary> &summary) {
    json.key("throughput");
    if (!summary) {
        json.null();
    } else {
        json.object().key("median_bytes_per_s").number(summary->median);
        json.key("low").number(summary->low).key("high").number(summary->high);
        json.key("mean").number(summary->mean).key("stddev").number(summary->stddev).end();
    }
    json.key("latency_ns").null();
    json.key("noise");
    summary && summary->noise ? json.string(summary->noise) : json.null();
    json.key("outliers").number(std::uint64_t{summary ? summary->outliers : 0});
}

void write_row(Json &json, const Row &row) {
    const Case &wanted = row.wanted;
    json.object();
    json.key("mechanism").string("windows-named-pipe");
    json.key("spec").string(spec_of(wanted));
    json.key("role").string("ranked");
    json.key("workload").string("stream");
    json.key("tasks").string(wanted.threads == 1 ? "single" : "threads");
    json.key("placement").string("any");
    json.key("cpus").array().end();
    json.key("wait").string("block");
    json.key("data").string(word(wanted.data));
    json.key("check");
    wanted.data == DataLevel::Verify ? json.string("xor") : json.null();
    json.key("payload").string("random");
    json.key("block_bytes").number(wanted.block_bytes);
    json.key("relays").number(std::uint64_t{0});
    json.key("zero_copy").null();
    json.key("granted").object();
    if (!row.samples.empty()) {
        json.key("in_buffer_bytes").number(row.granted.in_buffer_bytes);
        json.key("out_buffer_bytes").number(row.granted.out_buffer_bytes);
    }
    json.end().key("samples").array();
    for (const Sample &sample : row.samples) write_sample(json, sample);
    json.end();
    write_summary(json, summarise(row.samples));
    json.key("error");
    if (!row.trouble) {
        json.null();
    } else {
        json.object().key("kind").string(row.trouble->kind).key("message").string(row.trouble->message);
        json.key("remedy").optional(row.trouble->remedy).key("expected").boolean(row.trouble->expected).end();
    }
    json.end();
}

}  // namespace

std::string spec_of(const Case &wanted) {
    std::string spec = "windows-named-pipe:";
    if (wanted.overlapped) spec += "depth=" + std::to_string(wanted.depth) + ",overlapped,";
    if (wanted.slack_bytes != 24) spec += "slack=" + std::to_string(wanted.slack_bytes) + ",";
    return spec + "threads=" + std::to_string(wanted.threads) + ",type=" + word(wanted.type);
}

std::string record_json(const Options &options, const Host &host, const std::string &started,
                        const std::vector<Row> &rows, bool was_interrupted) {
    Json json;
    json.object().key("kind").string("bench").key("schema").string("hosepipe/1");
    json.key("tool").object().key("version").string(VERSION).key("revision").null().end();
    write_host(json, host);
    json.key("arguments").array();
    for (const std::string &argument : options.arguments) json.string(argument);
    json.end().key("started").string(started);
    json.key("settings").object().key("seed").number(options.seed);
    json.key("trials").number(std::uint64_t{options.series}).key("interrupted").boolean(was_interrupted).end();
    json.key("cases").array();
    for (const Row &row : rows) write_row(json, row);
    return json.end().end().done();
}
