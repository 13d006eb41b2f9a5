#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/document.h"
#include "config/python_numbers.h"
#include "config/syntax_error.h"
#include "config/text_checks.h"
#include "config/token_cursor.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;
using nlohmann::json;
using Last = TokenCursor::Last;

constexpr int number_overflow = 406;  // nlohmann's id of that out_of_range error

/// Builds the tree from the events of nlohmann's parser; a TokenCursor supplies the places.
class TreeBuilder final : public nlohmann::json_sax<json> {
public:
    TreeBuilder(Document& document, const Limits& limits, std::string_view root_pointer, diag::Diagnostics& diagnostics)
        : document_(document),
          source_(document.sources.back()),
          limits_(limits),
          root_pointer_(root_pointer),
          diagnostics_(diagnostics),
          cursor_(source_.text) {}

    bool null() override { return scalar(std::monostate{}); }
    bool boolean(bool value) override { return scalar(value); }
    bool number_integer(std::int64_t value) override { return scalar(value); }
    bool number_unsigned(std::uint64_t value) override {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            return scalar(ConfigValue::Huge{std::to_string(value)});
        }
        if (const auto number = python_number_at(std::string_view(source_.text).substr(cursor_.place().next))) {
            return scalar(number->value);
        }
        return scalar(static_cast<std::int64_t>(value));
    }
    bool number_float(double value, const std::string& digits) override {
        if (digits.find_first_of(".eE") == std::string::npos) {
            return scalar(ConfigValue::Huge{digits});
        }
        return scalar(value);
    }
    bool string(std::string& value) override { return scalar(std::move(value)); }
    bool binary(json::binary_t& /*value*/) override { return false; }

    bool start_object(std::size_t /*size*/) override { return open(ConfigValue::Object{}); }
    bool start_array(std::size_t /*size*/) override { return open(ConfigValue::Array{}); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(std::string& name) override {
        Frame& frame = frames_.back();
        frame.key = name;
        frame.key_range = cursor_.take(Last::key);
        const auto [first, fresh] = frame.keys.emplace(name, frame.key_range);
        return fresh || report_duplicate(frame, first->second);
    }

    bool parse_error(std::size_t position, const std::string& /*last_token*/,
                     const nlohmann::detail::exception& error) override {
        FailedParse parse{source_.text, cursor_.place(), std::min(position - 1, source_.text.size()), std::nullopt};
        if (!frames_.empty()) {
            parse.container = frames_.back().begin;
        }
        if (error.id == number_overflow) {
            const std::size_t begin = parse.place.next;
            const std::size_t length = number_length(std::string_view(source_.text).substr(begin));
            report("SP1006", {begin, begin + length}, "the number does not fit in 64-bit floating point");
            return false;
        }
        TextProblem problem = explain_syntax(parse);
        report("SP1002", problem.range, std::move(problem.message), std::move(problem.hint));
        return false;
    }

private:
    struct Frame {
        ConfigValue value;
        std::string key;
        TextRange key_range;
        std::size_t begin = 0;
        std::unordered_map<std::string, TextRange> keys;
        TextRange own_key;  ///< of this container in the one around it
    };

    void report(std::string_view code, TextRange range, std::string message, std::string hint = "",
                std::string pointer = "") {
        diagnostics_.report(code, std::move(message), std::move(pointer), std::move(hint));
        diagnostics_.all().back().span = span_of(source_, range);
    }

    /// Goes on after the first few, so that one run shows them together.
    bool report_duplicate(const Frame& frame, TextRange first) {
        constexpr int most_reported = 20;
        const diag::SourceSpan before = span_of(source_, first);
        report("SP1003", frame.key_range,
               fmt::format("key \"{}\" stands twice in one object; the first is at line {}, column {}", frame.key,
                           before.line, before.column),
               "keep one of them", next_pointer());
        return ++duplicates_ < most_reported;
    }

    std::string next_pointer() const {
        if (frames_.empty()) {
            return root_pointer_;
        }
        const Frame& frame = frames_.back();
        const ConfigValue::Array* array = frame.value.array();
        const std::string token = array != nullptr ? std::to_string(array->size()) : diag::escape_pointer(frame.key);
        return frame.value.pointer + "/" + token;
    }

    bool within_limits(const std::string& pointer, TextRange range) {
        pointer_bytes_ += pointer.size();
        if (++values_ > limits_.values) {
            report("SP1009", range, fmt::format("the document has more than {} values", limits_.values));
            return false;
        }
        if (pointer_bytes_ > limits_.pointer_bytes) {
            report("SP1009", range, "the keys of the document are too long");
            return false;
        }
        return true;
    }

    void locate(const std::string& pointer, TextRange key, TextRange value) {
        if (limits_.locations) {
            document_.locations[pointer] = {document_.sources.size() - 1, key, value};
        }
    }

    void add(ConfigValue value) {
        if (frames_.empty()) {
            document_.root = std::move(value);
            return;
        }
        Frame& frame = frames_.back();
        if (auto* array = std::get_if<ConfigValue::Array>(&frame.value.data)) {
            array->push_back(std::move(value));
        } else if (auto* object = std::get_if<ConfigValue::Object>(&frame.value.data)) {
            object->emplace_back(frame.key, std::move(value));
        }
    }

    TextRange current_key() const { return frames_.empty() ? TextRange{} : frames_.back().key_range; }

    template <typename Value>
    bool scalar(Value value) {
        const TextRange range = cursor_.take(Last::value);
        std::string pointer = next_pointer();
        if (!within_limits(pointer, range)) {
            return false;
        }
        locate(pointer, current_key(), range);
        add({std::move(value), std::move(pointer)});
        return true;
    }

    template <typename Container>
    bool open(Container container) {
        const TextRange range = cursor_.take(Last::open);
        std::string pointer = next_pointer();
        if (!within_limits(pointer, range)) {
            return false;
        }
        if (frames_.size() >= limits_.depth) {
            report("SP1009", range, fmt::format("nested deeper than {} levels", limits_.depth));
            return false;
        }
        const TextRange own_key = current_key();
        frames_.push_back({{std::move(container), std::move(pointer)}, "", {}, range.begin, {}, own_key});
        return true;
    }

    bool close() {
        const TextRange range = cursor_.take(Last::value);
        Frame frame = std::move(frames_.back());
        frames_.pop_back();
        locate(frame.value.pointer, frame.own_key, {frame.begin, range.end});
        add(std::move(frame.value));
        return true;
    }

    Document& document_;
    const Source& source_;
    const Limits& limits_;
    std::string root_pointer_;
    diag::Diagnostics& diagnostics_;
    TokenCursor cursor_;
    std::vector<Frame> frames_;
    std::size_t values_ = 0;
    std::size_t pointer_bytes_ = 0;
    int duplicates_ = 0;
};

}  // namespace

std::optional<Document> parse_document(std::string_view text, std::string name, diag::Diagnostics& diagnostics,
                                       const Limits& limits, std::string_view root_pointer) {
    Document document;
    text = without_bom(text);
    document.sources.push_back({std::move(name), std::string(text.substr(0, limits.bytes))});
    const Source& source = document.sources.back();
    const std::size_t errors_before = diagnostics.error_count();
    if (text.size() > limits.bytes) {
        diagnostics.report("SP1009", fmt::format("the document has {} bytes, more than {}", text.size(), limits.bytes));
        diagnostics.all().back().span = span_of(source, {0, 0});
        return std::nullopt;
    }
    if (auto problem = check_text(text)) {
        diagnostics.report("SP1002", std::move(problem->message), "", std::move(problem->hint));
        diagnostics.all().back().span = span_of(source, problem->range);
        return std::nullopt;
    }
    TreeBuilder builder(document, limits, root_pointer, diagnostics);
    const bool with_words = limits.python_numbers && (source.text.find("NaN") != std::string::npos ||
                                                      source.text.find("Infinity") != std::string::npos);
    const std::string numbers = with_words ? with_zeros_for_python_numbers(source.text) : "";
    const std::string& parsed = with_words ? numbers : source.text;
    const bool complete = json::sax_parse(parsed.begin(), parsed.end(), &builder);
    if (!complete || diagnostics.error_count() > errors_before) {
        return std::nullopt;
    }
    return document;
}

}  // namespace shardplan::config
