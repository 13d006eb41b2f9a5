// "--set model.x=..." on a job that names its model by a path: the model's config takes the place of the path, so that
// it can be changed. Its places stay those of its own file.
#pragma once

#include <string>

#include "config/document.h"
#include "config/overrides.h"

namespace shardplan::config {

/// The path of the model's config that a job in `directory` names.
std::string model_path(const std::string& name, const std::string& directory);

/// Puts the config into `document` when the overrides need it there. A file that cannot be read or parsed is left to
/// the reader, which reports it: then the result has no overrides of the model, otherwise it is `overrides`.
Overrides inline_model(Document& document, const std::string& directory, const Overrides& overrides,
                       diag::Diagnostics& diagnostics);

}  // namespace shardplan::config
