#include "config/python_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shardplan::config {
namespace {

using model::ConfigValue;

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '.' || c == '+' || c == '-';
}

/// Behind the string that begins at `i`.
std::size_t string_end(std::string_view text, std::size_t i) {
    for (++i; i < text.size() && text[i] != '"'; ++i) {
        i += text[i] == '\\' ? 1 : 0;
    }
    return std::min(i + 1, text.size());
}

class Reporter {
public:
    Reporter(const Document& document, std::string_view model, diag::Diagnostics& diagnostics)
        : document_(document), model_(model), diagnostics_(diagnostics) {}

    void visit(const ConfigValue& value) {
        if (const double* real = value.real(); real != nullptr && !std::isfinite(*real)) {
            report(value);
        }
        if (const ConfigValue::Array* array = value.array()) {
            std::for_each(array->begin(), array->end(), [this](const ConfigValue& element) { visit(element); });
        }
        if (const ConfigValue::Object* object = value.object()) {
            std::for_each(object->begin(), object->end(), [this](const auto& member) { visit(member.second); });
        }
    }

private:
    void report(const ConfigValue& value) {
        constexpr int most_reported = 20;
        if (++reported_ > most_reported) {
            return;
        }
        const bool of_model = value.pointer == model_ || value.pointer.starts_with(std::string(model_) + "/");
        const auto place = document_.place(value.pointer);
        const std::string_view text = std::string_view(document_.sources[place.source].text)
                                          .substr(place.range.begin, place.range.end - place.range.begin);
        diagnostics_.report(of_model ? "SP1010" : "SP1002",
                            fmt::format("'{}' is not a number in JSON{}", text,
                                        of_model ? "; it is read as Python's json module writes it" : ""),
                            value.pointer, "write a finite number");
    }

    const Document& document_;
    std::string_view model_;
    diag::Diagnostics& diagnostics_;
    int reported_ = 0;
};

}  // namespace

std::optional<PythonNumber> python_number_at(std::string_view text) {
    if (text.empty() || (text[0] != 'N' && text[0] != 'I' && text[0] != '-')) {
        return std::nullopt;
    }
    constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr auto words = std::to_array<std::pair<std::string_view, double>>(
        {{"NaN", std::numeric_limits<double>::quiet_NaN()}, {"Infinity", infinity}, {"-Infinity", -infinity}});
    for (const auto& [word, value] : words) {
        if (text.starts_with(word) && (text.size() == word.size() || !is_word(text[word.size()]))) {
            return PythonNumber{value, word.size()};
        }
    }
    return std::nullopt;
}

std::string with_zeros_for_python_numbers(std::string_view text) {
    std::string result(text);
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] == '"') {
            i = string_end(text, i);
        } else if (!is_word(text[i])) {
            ++i;
        } else if (const auto number = python_number_at(text.substr(i))) {
            std::fill_n(result.begin() + static_cast<std::ptrdiff_t>(i), number->length, ' ');
            result[i] = '0';
            i += number->length;
        } else {
            while (i < text.size() && is_word(text[i])) {
                ++i;
            }
        }
    }
    return result;
}

void report_python_numbers(const Document& document, std::string_view model, diag::Diagnostics& diagnostics) {
    Reporter(document, model, diagnostics).visit(document.root);
}

}  // namespace shardplan::config
