// A streaming JSON writer: two blanks per level, keys in the order written, the same bytes on every machine.
// Strings are escaped, invalid UTF-8 becomes U+FFFD, integers are exact, doubles are the shortest text that reads back
// equal and always look like doubles ("1.0"); NaN and infinities are null. Holds no document, only the next few
// thousand bytes, which are written when they are many and when the document ends.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shardplan::report {

/// Of an array or object: one member per line, or all on one line (with all within).
enum class JsonLayout { lines, one_line };

class JsonWriter {
public:
    explicit JsonWriter(std::ostream& out) : out_(out) { pending_.reserve(2 * block); }
    ~JsonWriter() { flush(); }
    JsonWriter(const JsonWriter&) = delete;
    JsonWriter& operator=(const JsonWriter&) = delete;

    /// The document, or an element of an array. `body` writes the fields.
    template <class Body>
    requires std::invocable<Body&>
    void object(Body&& body, JsonLayout layout = JsonLayout::lines) {
        open('{', layout);
        body();
        close('}');
    }
    template <class Body>
    void object(std::string_view key, Body&& body, JsonLayout layout = JsonLayout::lines) {
        write_key(key);
        object(body, layout);
    }
    /// `each(element)` writes one value: object(..), value(..) or items(..).
    template <class Range, class Each>
    void array(std::string_view key, const Range& range, Each&& each, JsonLayout layout = JsonLayout::lines) {
        write_key(key);
        open('[', layout);
        for (const auto& element : range) {
            each(element);
        }
        close(']');
    }
    /// An element that is an array of scalars.
    template <class Range>
    void items(const Range& range, JsonLayout layout = JsonLayout::one_line) {
        open('[', layout);
        for (const auto& element : range) {
            value(element);
        }
        close(']');
    }
    /// A field that is an array of scalars.
    template <class Range>
    void list(std::string_view key, const Range& range, JsonLayout layout = JsonLayout::one_line) {
        write_key(key);
        items(range, layout);
    }
    template <class T>
    void field(std::string_view key, const T& scalar) {
        write_key(key);
        value(scalar);
    }
    template <class T>
    void value(const T& scalar) {
        separate();
        if constexpr (std::is_null_pointer_v<T>) {
            raw("null");
        } else if constexpr (std::is_same_v<T, bool>) {
            raw(scalar ? "true" : "false");
        } else if constexpr (std::is_floating_point_v<T>) {
            write_double(static_cast<double>(scalar));
        } else if constexpr (std::is_unsigned_v<T>) {
            write_unsigned(scalar);
        } else if constexpr (std::is_integral_v<T>) {
            write_integer(scalar);
        } else {
            write_string(std::string_view(scalar));
        }
    }

private:
    struct Level {
        bool one_line = false;
        bool empty = true;
    };

    static constexpr std::size_t block = 8192;

    void raw(std::string_view text) { pending_.append(text); }
    void flush();
    void open(char bracket, JsonLayout layout);
    void close(char bracket);
    void separate();
    void break_line();
    void write_key(std::string_view key);
    void write_string(std::string_view text);
    void write_integer(std::int64_t number);
    void write_unsigned(std::uint64_t number);
    void write_double(double number);

    std::ostream& out_;
    std::string pending_;
    std::vector<Level> levels_;
    bool after_key_ = false;
};

}  // namespace shardplan::report
