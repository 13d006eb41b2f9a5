// Reads the Hugging Face config of a model from its own file, as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.h"
#include "model/model_spec.h"

namespace shardplan::config {

/// `path` is a file or a directory that holds config.json. What is wrong in the file gets its places there; a file that
/// cannot be read (SP1001) is reported at `pointer`. `documents`, when given, receives the file's document.
std::optional<model::ModelSpec> read_model_config(const std::string& path, diag::Diagnostics& diagnostics,
                                                  const std::string& pointer = "",
                                                  std::vector<Document>* documents = nullptr);

/// The same from a document at hand.
std::optional<model::ModelSpec> read_model_config(const Document& document, diag::Diagnostics& diagnostics);

/// `path`/config.json when `path` is a directory, else `path`.
std::string config_in_directory(const std::string& path);

}  // namespace shardplan::config
