// Text inside the formats of other tools: workflow commands of GitHub, XML, and references to files as URIs.
// Any bytes may come in; what comes out is valid UTF-8 that the format can hold: invalid bytes become U+FFFD, control
// characters that the format has no escape for become "\x1b".
#pragma once

#include <string>
#include <string_view>

namespace shardplan::report {

/// "%" -> "%25", CR -> "%0D", LF -> "%0A" (workflow commands, the part behind "::").
std::string github_message(std::string_view text);
/// As a message, and ":" -> "%3A", "," -> "%2C" (name=value before the second "::").
std::string github_property(std::string_view text);

/// XML 1.0 between tags.
std::string xml_text(std::string_view text);
/// XML 1.0 between double quotes; line ends and tabs are kept as character references.
std::string xml_attribute(std::string_view text);

/// A path with forward slashes as a URI reference (RFC 3986): all but unreserved characters and "/" are
/// percent-encoded byte by byte; absolute paths become "file:///...".
std::string uri_reference(std::string_view path);

}  // namespace shardplan::report
