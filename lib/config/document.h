// A JSON text as a tree of model::ConfigValue plus, for every value, the place where it stands.
// Promises: unique keys, valid UTF-8, bounded depth, size and number of values; integers stay integers and those beyond
// 64 bits keep their digits. Every problem becomes a diagnostic with line and column; nothing is repaired silently.
// Knows nothing of jobs or models.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diag/diagnostic.h"
#include "model/config_value.h"

namespace shardplan::config {

struct Limits {
    std::size_t depth = 64;
    std::size_t bytes = std::size_t{16} << 20;
    std::size_t values = 1'000'000;
    std::size_t pointer_bytes = std::size_t{256} << 20;  ///< sum of the lengths of all JSON pointers
    bool locations = true;                               ///< false: no table of places (checkpoint headers)
    bool python_numbers = false;                         ///< read NaN and Infinity; the caller reports them
};

/// Bytes [begin, end) of a text.
struct TextRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

struct Source {
    std::string name;  ///< as shown to the user: a path, "<stdin>" or "<--set workload.batch_size>"
    std::string text;  ///< without byte order mark
};

struct Location {
    std::size_t source = 0;  ///< index into Document::sources
    TextRange key;           ///< quotes included; empty for elements of arrays and for the root
    TextRange value;
};

struct Document {
    model::ConfigValue root;
    std::vector<Source> sources;                          ///< the file first, then command line options
    std::unordered_map<std::string, Location> locations;  ///< by JSON pointer

    /// Where the value of `pointer` stands, or, when there is none, the opening of the nearest value around it.
    diag::SourceSpan span(std::string_view pointer) const;
    /// The key of `pointer`; as span() where it has none.
    diag::SourceSpan key_span(std::string_view pointer) const;

    /// A range of one of the sources.
    struct Place {
        std::size_t source = 0;
        TextRange range;
    };
    /// What span() and key_span() show. @pre sources is not empty
    Place place(std::string_view pointer) const;
    Place key_place(std::string_view pointer) const;
};

/// Line and column (code points) of a range of bytes.
diag::SourceSpan span_of(const Source& source, TextRange range);

/// Errors: SP1002 (syntax, encoding, not JSON at all), SP1003 (duplicate keys), SP1006 (number beyond double), SP1009
/// (limits). `root_pointer` stands before every pointer.
std::optional<Document> parse_document(std::string_view text, std::string name, diag::Diagnostics& diagnostics,
                                       const Limits& limits = {}, std::string_view root_pointer = "");

/// Gives every diagnostic that has no span yet the place of its pointer in `document`. One pass over each text, however
/// many diagnostics there are.
void attach_spans(diag::Diagnostics& diagnostics, const Document& document);

}  // namespace shardplan::config
